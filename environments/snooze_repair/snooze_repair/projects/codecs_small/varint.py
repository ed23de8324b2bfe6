"""Whole numbers in as few bytes as possible: 7 bits each, the lowest first, the high bit says that more follow."""


def encode(number):
    if number < 0:
        raise ValueError("negative")
    out = []
    while True:
        low = number & 127
        number >>= 7
        if number == 0:
            out.append(low)
            return out
        out.append(low | 128)


def decode_all(data):
    """All numbers in a list of bytes."""
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        if byte & 128:
            shift += 7
        else:
            numbers.append(number)
            number, shift = 0, 0
    if shift:
        raise ValueError("the last number is cut off")
    return numbers


def zigzag(number):
    """Numbers of both signs as positive ones: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4."""
    return 2 * number if number >= 0 else -2 * number - 1


def unzigzag(number):
    return number // 2 if number % 2 == 0 else -(number + 1) // 2


def deltas(numbers):
    """The first number and then the differences, as bytes."""
    out, last = [], 0
    for number in numbers:
        out += encode(zigzag(number - last))
        last = number
    return out


def undeltas(data):
    numbers, last = [], 0
    for step in decode_all(data):
        last += unzigzag(step)
        numbers.append(last)
    return numbers


def checksum(data):
    """Adler-32."""
    a, b = 1, 0
    for byte in data:
        a = (a + byte) % 65521
        b = (b + a) % 65521
    return (b << 16) | a
