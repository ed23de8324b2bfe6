"""A lift that serves calls on its way before it turns round."""


class Lift:
    def __init__(self, floors, start=0):
        if not 0 <= start < floors:
            raise ValueError("no such floor")
        self.floors = floors
        self.floor = start
        self.direction = 0
        self.stops = set()
        self.moved = 0
        self.log = []

    def call(self, floor):
        """Ask for a stop; False if the lift is standing there."""
        if not 0 <= floor < self.floors:
            raise ValueError("no such floor")
        if floor == self.floor and self.direction == 0:
            return False
        self.stops.add(floor)
        return True

    def step(self):
        """Move one floor if there is a reason to; True if the doors opened."""
        self.direction = self._choose()
        if self.direction == 0:
            return False
        self.floor += self.direction
        self.moved += 1
        if self.floor in self.stops:
            self.stops.discard(self.floor)
            self.log.append(self.floor)
            if not self.stops:
                self.direction = 0
            return True
        return False

    def _choose(self):
        """Go on while there are stops ahead, else turn; from standing to the nearer stop, up when equal."""
        above = [stop for stop in self.stops if stop > self.floor]
        below = [stop for stop in self.stops if stop < self.floor]
        if self.direction > 0 and above:
            return 1
        if self.direction < 0 and below:
            return -1
        if above and below:
            up, down = min(above) - self.floor, self.floor - max(below)
            return 1 if up <= down else -1
        if above:
            return 1
        return -1 if below else 0

    def run(self, limit=1000):
        """Serve all stops; the floors in order."""
        while self.stops and limit > 0:
            self.step()
            limit -= 1
        return self.log


class Bank:
    """Several lifts; a call goes to the one that can be there first."""

    def __init__(self, floors, *starts):
        self.lifts = [Lift(floors, start) for start in starts]

    def cost(self, lift, floor):
        """Floors that the lift has to go to be there."""
        ahead = (floor - lift.floor) * lift.direction
        if lift.direction == 0 or ahead > 0:
            return abs(floor - lift.floor)
        turn = max(lift.stops) if lift.direction > 0 else min(lift.stops)
        return abs(turn - lift.floor) + abs(turn - floor)

    def call(self, floor):
        """Number of the lift that will come."""
        number = min(range(len(self.lifts)), key=lambda n: (self.cost(self.lifts[n], floor), n))
        self.lifts[number].call(floor)
        return number
