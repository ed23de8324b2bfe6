"""Accounts, transfers and statements."""

from money import parse, show


class LedgerError(Exception):
    """A booking that is not allowed."""


class Ledger:
    def __init__(self, overdraft="0"):
        self.overdraft = parse(overdraft)
        self.balances = {}
        self.entries = []
        self.day = 0

    def open(self, name, amount="0"):
        if name in self.balances:
            raise LedgerError(f"{name} exists")
        self.balances[name] = 0
        if parse(amount):
            self.deposit(name, amount)

    def next_day(self):
        self.day += 1
        return self.day

    def deposit(self, name, amount):
        cents = self._positive(amount)
        self._book(name, cents, "deposit")

    def withdraw(self, name, amount, kind="withdrawal"):
        cents = self._positive(amount)
        if self._balance(name) - cents < -self.overdraft:
            raise LedgerError(f"{name} has only {show(self.balances[name])}")
        self._book(name, -cents, kind)

    def transfer(self, source, target, amount):
        """Both bookings or none."""
        if source == target:
            raise LedgerError("an account cannot pay itself")
        self._balance(target)
        self.withdraw(source, amount, kind="transfer")
        self._book(target, parse(amount), "transfer")

    def balance(self, name):
        return show(self._balance(name))

    def statement(self, name, since=0):
        """(day, kind, amount, balance after) from a day on."""
        rows, balance = [], 0
        for day, who, cents, kind in self.entries:
            if who != name:
                continue
            balance += cents
            if day >= since:
                rows.append((day, kind, show(cents), show(balance)))
        return rows

    def interest(self, percent):
        """Pay interest on positive balances, rounded down to cents; the total that was paid."""
        total = 0
        for name, cents in list(self.balances.items()):
            gain = cents * percent // 100
            if gain > 0:
                self._book(name, gain, "interest")
                total += gain
        return show(total)

    def total(self):
        return show(sum(self.balances.values()))

    def _positive(self, amount):
        cents = parse(amount)
        if cents <= 0:
            raise LedgerError("amounts must be positive")
        return cents

    def _balance(self, name):
        if name not in self.balances:
            raise LedgerError(f"no account {name}")
        return self.balances[name]

    def _book(self, name, cents, kind):
        self.balances[name] = self._balance(name) + cents
        self.entries.append((self.day, name, cents, kind))
