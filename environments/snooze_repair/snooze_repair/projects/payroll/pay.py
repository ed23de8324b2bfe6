"""Wages from hours: overtime, taxes in steps, payslips. Amounts are cents."""

BRACKETS = ((100000, 0), (300000, 20), (None, 40))


def hours_paid(days, normal=8, weekend=()):
    """(normal, overtime, double) hours of a week: overtime after the normal hours of a day, double on weekend days."""
    plain = over = double = 0
    for day, hours in enumerate(days):
        if hours < 0 or hours > 24:
            raise ValueError(f"{hours} hours in a day")
        if day in weekend:
            double += hours
        else:
            plain += min(hours, normal)
            over += max(0, hours - normal)
    return plain, over, double


def gross(days, rate, weekend=(5, 6)):
    """Overtime is paid at one and a half, weekends at double; a half cent is rounded up."""
    plain, over, double = hours_paid(days, weekend=weekend)
    halves = 2 * plain * rate + 3 * over * rate + 4 * double * rate
    return int((halves + 1) // 2)


def tax(income, brackets=BRACKETS):
    """Each bracket (end, percent) taxes what lies between the last end and its own, rounded down."""
    total, start = 0, 0
    for end, percent in brackets:
        part = income - start if end is None else min(income, end) - start
        if part <= 0:
            break
        total += part * percent
        start = end
    return total // 100


def top_rate(income, brackets=BRACKETS):
    """Percent on the next cent."""
    for end, percent in brackets:
        if end is None or income < end:
            return percent
    return brackets[-1][1]


def net(income, children=0, fee=5000):
    """After tax and fee; each child takes 20 000 off the taxed income. Never below zero."""
    taxed = max(0, income - 20000 * children)
    return max(0, income - tax(taxed) - fee)


class Payroll:
    def __init__(self):
        self.people = {}
        self.paid = {}

    def hire(self, name, rate, children=0):
        if name in self.people:
            raise ValueError(f"{name} works here")
        self.people[name] = (rate, children)
        self.paid[name] = 0

    def pay(self, name, weeks):
        """Net pay for some weeks of hours, added to the year's sum."""
        rate, children = self.people[name]
        amount = net(sum(gross(week, rate) for week in weeks), children)
        self.paid[name] += amount
        return amount

    def raise_all(self, percent):
        """Raise every rate, rounded down."""
        for name, (rate, children) in self.people.items():
            self.people[name] = (rate + rate * percent // 100, children)

    def top(self, n=1):
        """Who was paid most this year; equal ones by name."""
        return sorted(self.paid, key=lambda name: (-self.paid[name], name))[:n]

    def report(self):
        return [f"{name}: {cents // 100}.{cents % 100:02d}" for name, cents in sorted(self.paid.items())]
