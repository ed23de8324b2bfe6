"""Meeting rooms and their bookings; times are minutes of a day."""


class BookingError(Exception):
    pass


class Room:
    def __init__(self, name, seats, opens=480, closes=1080):
        self.name = name
        self.seats = seats
        self.opens = opens
        self.closes = closes
        self.bookings = []

    def is_free(self, start, end):
        """Free from start to end; one booking may begin when another ends."""
        if start < self.opens or end > self.closes:
            return False
        return all(end <= other or start >= until for other, until, _ in self.bookings)

    def book(self, start, end, who):
        if start >= end:
            raise BookingError("ends before it starts")
        if not self.is_free(start, end):
            raise BookingError(f"{self.name} is taken")
        self.bookings.append((start, end, who))
        self.bookings.sort()

    def cancel(self, who):
        """Remove all bookings of somebody; how many."""
        kept = [one for one in self.bookings if one[2] != who]
        gone = len(self.bookings) - len(kept)
        self.bookings = kept
        return gone

    def gaps(self, length):
        """Free stretches of at least a length, as (start, end)."""
        found, at = [], self.opens
        for start, end, _ in self.bookings:
            if start - at >= length:
                found.append((at, start))
            at = max(at, end)
        if self.closes - at >= length:
            found.append((at, self.closes))
        return found

    def used(self):
        """Booked minutes."""
        return sum(end - start for start, end, _ in self.bookings)


class House:
    def __init__(self, *rooms):
        self.rooms = {name: Room(name, seats) for name, seats in rooms}

    def find(self, people, start, end):
        """The smallest room that is free and large enough, None if there is none."""
        fitting = [r for r in self.rooms.values() if r.seats >= people and r.is_free(start, end)]
        if not fitting:
            return None
        return min(fitting, key=lambda room: (room.seats, room.name)).name

    def book(self, people, start, end, who):
        name = self.find(people, start, end)
        if name is None:
            raise BookingError("no room")
        self.rooms[name].book(start, end, who)
        return name

    def earliest(self, people, length):
        """(start, room) of the earliest stretch in a room that is large enough."""
        found = [
            (start, room.seats, room.name)
            for room in self.rooms.values()
            if room.seats >= people
            for start, _ in room.gaps(length)
        ]
        if not found:
            return None
        start, _, name = min(found)
        return (start, name)

    def plan(self, who):
        """Sorted (start, end, room) of somebody."""
        return sorted((s, e, room.name) for room in self.rooms.values() for s, e, w in room.bookings if w == who)


def clock(minutes):
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
