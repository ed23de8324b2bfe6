"""Ways through a graph."""


def distances(graph, start):
    """Length of the shortest way to every node that can be reached."""
    done = {}
    waiting = {start: 0}
    while waiting:
        node = min(waiting, key=lambda one: (waiting[one], one))
        length = waiting.pop(node)
        done[node] = length
        for other, step in graph.near(node):
            if other in done:
                continue
            if other not in waiting or length + step < waiting[other]:
                waiting[other] = length + step
    return done


def path(graph, start, goal):
    """Nodes on a shortest way, None if there is none. Among equal ways the first by name from the end."""
    lengths = distances(graph, start)
    if goal not in lengths:
        return None
    way = [goal]
    while way[-1] != start:
        here = way[-1]
        for node in graph.nodes():
            step = graph.edges[node].get(here)
            if step is not None and node in lengths and lengths[node] + step == lengths[here] and node not in way:
                way.append(node)
                break
    return way[::-1]


def hops(graph, start, goal):
    """Fewest edges from start to goal, -1 if there is no way."""
    seen, layer, count = {start}, [start], 0
    while layer:
        if goal in layer:
            return count
        following = []
        for node in layer:
            for other, _ in graph.near(node):
                if other not in seen:
                    seen.add(other)
                    following.append(other)
        layer = following
        count += 1
    return -1


def components(graph):
    """Groups of nodes that hang together, whatever the direction; sorted."""
    links = {node: set(graph.edges[node]) for node in graph.edges}
    for node, others in graph.edges.items():
        for other in others:
            links[other].add(node)
    groups, seen = [], set()
    for start in graph.nodes():
        if start in seen:
            continue
        group, waiting = {start}, [start]
        while waiting:
            for other in links[waiting.pop()]:
                if other not in group:
                    group.add(other)
                    waiting.append(other)
        seen |= group
        groups.append(sorted(group))
    return groups


def eccentricity(graph, node):
    """Length of the longest of the shortest ways from a node."""
    return max(distances(graph, node).values())
