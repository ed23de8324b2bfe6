"""Times at which something happens: minute hour day month weekday, with *, lists, ranges and steps."""

LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def field(text, low, high):
    """Sorted numbers that a field stands for."""
    found = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        if slash and (not step.isdigit() or int(step) < 1):
            raise ValueError(f"{part!r} has no step")
        if span == "*":
            first, last = low, high
        else:
            start, dash, end = span.partition("-")
            if not start.isdigit() or (dash and not end.isdigit()):
                raise ValueError(f"{part!r} is no number")
            first = int(start)
            last = int(end) if dash else high if slash else first
        if first < low or last > high or first > last:
            raise ValueError(f"{part!r} is outside {low} to {high}")
        found.update(range(first, last + 1, int(step) if slash else 1))
    return sorted(found)


class Schedule:
    def __init__(self, text):
        parts = text.split()
        if len(parts) != 5:
            raise ValueError("a schedule has five fields")
        values = [field(part, low, high) for part, (low, high) in zip(parts, LIMITS)]
        self.minutes, self.hours, self.days, self.months, self.weekdays = values
        self.any_day = parts[2] == "*"
        self.any_weekday = parts[4] == "*"

    def on_day(self, month, day, weekday):
        """If both day and weekday are given, one of them is enough."""
        if month not in self.months:
            return False
        if self.any_day:
            return weekday in self.weekdays
        if self.any_weekday:
            return day in self.days
        return day in self.days or weekday in self.weekdays

    def matches(self, month, day, weekday, hour, minute):
        return self.on_day(month, day, weekday) and hour in self.hours and minute in self.minutes

    def next(self, month, day, weekday, hour, minute):
        """The first time after the given one, (month, day, hour, minute); None if none comes within a year."""
        for days in range(366):
            if self.on_day(month, day, weekday):
                for h in self.hours:
                    for m in self.minutes:
                        if days > 0 or (h, m) > (hour, minute):
                            return (month, day, h, m)
            month, day = following(month, day)
            weekday = (weekday + 1) % 7
        return None

    def per_day(self):
        return len(self.minutes) * len(self.hours)


def following(month, day):
    """The day after, in a year that is not a leap year."""
    if day < DAYS[month - 1]:
        return month, day + 1
    return (month + 1, 1) if month < 12 else (1, 1)
