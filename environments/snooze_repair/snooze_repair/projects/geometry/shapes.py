"""Points, segments and polygons with whole coordinates."""


def cross(a, b, c):
    """Positive if the way from a over b to c turns left, negative if right, 0 if straight."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def on_segment(p, a, b):
    """Whether p lies between a and b, ends included."""
    if cross(a, b, p) != 0:
        return False
    return min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[1] <= max(a[1], b[1])


def sign(number):
    return (number > 0) - (number < 0)


def segments_meet(a, b, c, d):
    """Whether two segments have a point in common, touching included."""
    if sign(cross(a, b, c)) != sign(cross(a, b, d)) and sign(cross(c, d, a)) != sign(cross(c, d, b)):
        return True
    return on_segment(c, a, b) or on_segment(d, a, b) or on_segment(a, c, d) or on_segment(b, c, d)


def edges(points):
    return [(points[i], points[(i + 1) % len(points)]) for i in range(len(points))]


def double_area(points):
    """Twice the area, positive when the corners run against the clock."""
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in edges(points))


def area(points):
    return abs(double_area(points)) / 2


def inside(p, points):
    """Inside a polygon or on its border."""
    if any(on_segment(p, a, b) for a, b in edges(points)):
        return True
    result = False
    for a, b in edges(points):
        if (a[1] > p[1]) != (b[1] > p[1]):
            low, high = (a, b) if a[1] < b[1] else (b, a)
            if cross(low, high, p) > 0:
                result = not result
    return result


def hull(points):
    """Corners of the convex hull against the clock, from the leftmost lowest on, without points on its sides."""
    points = sorted(set(points))
    if len(points) < 3:
        return points
    return half(points)[:-1] + half(points[::-1])[:-1]


def half(points):
    chain = []
    for p in points:
        while len(chain) >= 2 and cross(chain[-2], chain[-1], p) <= 0:
            chain.pop()
        chain.append(p)
    return chain


def is_convex(points):
    turns = {sign(cross(a, b, c)) for (a, b), (_, c) in zip(edges(points), edges(points[1:] + points[:1]))}
    return not {1, -1} <= turns


def box(points):
    """((left, bottom), (right, top))"""
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return (min(xs), min(ys)), (max(xs), max(ys))


def boxes_overlap(p, q):
    """Whether the boxes of two polygons share more than a border."""
    (left, bottom), (right, top) = box(p)
    (left2, bottom2), (right2, top2) = box(q)
    return left < right2 and left2 < right and bottom < top2 and bottom2 < top


def perimeter_squares(points):
    """Squared lengths of the sides, in order."""
    return [(b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2 for a, b in edges(points)]
