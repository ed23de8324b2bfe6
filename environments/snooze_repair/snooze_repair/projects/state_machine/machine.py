"""States, events and the way between them."""


class MachineError(Exception):
    """An event that is not allowed."""


class Machine:
    """`rules` are (state, event, next state); "*" as a state means any."""

    def __init__(self, start, rules, final=()):
        self.state = start
        self.start = start
        self.final = set(final)
        self.rules = {}
        self.history = [start]
        for state, event, target in rules:
            if (state, event) in self.rules:
                raise MachineError(f"two rules for {event} in {state}")
            self.rules[(state, event)] = target

    def target(self, event):
        """Where an event would lead, None if it is not allowed. A rule for the state itself wins over "*"."""
        if self.state in self.final:
            return None
        exact = self.rules.get((self.state, event))
        if exact is not None:
            return exact
        return self.rules.get(("*", event))

    def send(self, event):
        target = self.target(event)
        if target is None:
            raise MachineError(f"{event} is not allowed in {self.state}")
        self.state = target
        self.history.append(target)
        return target

    def run(self, events):
        """Send events until one is refused; how many were accepted."""
        count = 0
        for event in events:
            if self.target(event) is None:
                break
            self.send(event)
            count += 1
        return count

    def undo(self):
        """Back to the state before; False at the start."""
        if len(self.history) < 2:
            return False
        self.history.pop()
        self.state = self.history[-1]
        return True

    def reset(self):
        self.state = self.start
        self.history = [self.start]

    def allowed(self):
        """Sorted events that are allowed now."""
        events = {event for _, event in self.rules}
        return sorted(event for event in events if self.target(event) is not None)

    def reachable(self):
        """Sorted states that can be reached from the start, the start included."""
        found, waiting = {self.start}, [self.start]
        while waiting:
            state = waiting.pop()
            if state in self.final:
                continue
            for (source, _), target in self.rules.items():
                if source in (state, "*") and target not in found:
                    found.add(target)
                    waiting.append(target)
        return sorted(found)

    def unused(self):
        """Sorted states that have rules but cannot be reached."""
        return sorted({state for state, _ in self.rules} - set(self.reachable()) - {"*"})
