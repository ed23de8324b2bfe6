"""Dates of the Gregorian calendar as (year, month, day)."""

LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year, month):
    if not 1 <= month <= 12:
        raise ValueError(f"no month {month}")
    return LENGTHS[month - 1] + (1 if month == 2 and is_leap(year) else 0)


def is_valid(year, month, day):
    return 1 <= month <= 12 and 1 <= day <= month_length(year, month)


def number(date):
    """Days since the start of year 1, which is day 1."""
    year, month, day = date
    before = year - 1
    count = before * 365 + before // 4 - before // 100 + before // 400
    for one in range(1, month):
        count += month_length(year, one)
    return count + day


def between(first, second):
    """Days from the first date to the second; negative if it came earlier."""
    return number(second) - number(first)


def weekday(date):
    """Name of the day; day 1 was a Monday."""
    return NAMES[(number(date) - 1) % 7]


def add_days(date, days):
    year, month, day = date
    day += days
    while day > month_length(year, month):
        day -= month_length(year, month)
        month += 1
        if month > 12:
            month = 1
            year += 1
    while day < 1:
        month -= 1
        if month < 1:
            month = 12
            year -= 1
        day += month_length(year, month)
    return (year, month, day)


def add_months(date, months):
    """The same day some months later, or the last one of a shorter month."""
    year, month, day = date
    total = year * 12 + (month - 1) + months
    year, month = total // 12, total % 12 + 1
    return (year, month, min(day, month_length(year, month)))


def day_of_year(date):
    year, month, day = date
    return sum(month_length(year, one) for one in range(1, month)) + day


def nth_weekday(year, month, name, n):
    """Date of the n-th such day of a month, None if it has fewer."""
    first = NAMES.index(weekday((year, month, 1)))
    day = 1 + (NAMES.index(name) - first) % 7 + 7 * (n - 1)
    return (year, month, day) if day <= month_length(year, month) else None
