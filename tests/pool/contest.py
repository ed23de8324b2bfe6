"""Authored contest problems: some share nothing but boilerplate, some are copies in other dress."""

from __future__ import annotations

TRAINING = (
    r"The probability that a randomly chosen divisor of $12^{9}$ is a multiple of $12^{5}$ can be written as $\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find $m+n$.",
    r"Triangle $KLM$ has $KL=9$ and $LM=16$. The bisector of angle $L$ meets side $KM$ at a point whose distance from $K$ can be written as $\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find $m+n$.",
    r"Let $N$ be the number of ways to seat seven diplomats at a round table so that no two from the same continent are neighbours. Find the remainder when $N$ is divided by $1000$.",
    r"A frog leaps between lily pads numbered 1 to 30, each leap doubling its last distance. Let $S$ be the sum of all pads it may rest on. Find the remainder when $S$ is divided by $1000$.",
    r"Square $ABCD$ has side length 14. A circle inside it touches two sides and a diagonal, and its radius is $a-b\sqrt{c}$, where $a$, $b$, and $c$ are positive integers and $c$ is not divisible by the square of any prime. Find $a+b+c$.",
    r"Find the number of ordered pairs $(x, y)$ of positive integers such that $x$ divides $y+6$ and $y$ divides $x+6$.",
    r"Six red and four blue tiles are laid in a row at random. The expected number of colour changes along the row can be expressed as $\frac{p}{q}$, where $p$ and $q$ are relatively prime positive integers. Find $p+q$.",
    r"The polynomial $x^3 - 7x^2 + kx - 8$ has three roots in geometric progression. Find the value of $k$. Express your answer as an integer.",
    r"What is the area of the region enclosed by the graph of $|x-40|+|y|=|x/4|$? Express your answer in simplest form.",
    r"A bag holds tickets numbered from 1 to 60. Two are drawn without replacement. What is the probability that their product ends in zero? Express your answer as a common fraction.",
    r"A regular tetrahedron with edge 10 is cut by a plane parallel to a face halfway up. Find the volume of the frustum that remains. Express your answer in simplest radical form.",
    r"Let $a_1=3$ and $a_{n+1}=a_n^2-2$ for all $n\ge 1$. Find the remainder when $a_{2020}$ is divided by $1000$.",
    r"Solve the following math problem efficiently and clearly. The last line of your response should be of the following format: a trapezoid with bases 8 and 20 has legs 10 and 10; compute its height. Please reason step by step, and put your final answer within \boxed{}.",
    r"Please reason step by step, and put your final answer within \boxed{}. How many lattice points lie strictly inside the ellipse with semi-axes 5 and 3 centred at the origin?",
    r"There are positive integers $b$ for which $97_b$ divides $1071_b$ in base ten reading. Compute the sum of all such bases. Let's think step by step and put the final answer within \boxed{}.",
    r"In how many ways can a $3\times 8$ board be covered by dominoes without gaps? Find the last three digits of your count.",
    r"The complex numbers $z$ with $|z|=20$ maximise a certain linear form whose greatest real part is $r\sqrt{s}$, where $r$ and $s$ are positive integers and $s$ is not divisible by the square of any prime. Find $r+s$.",
    r"For real numbers $u$ and $v$ with $u+v=6$ and $u^3+v^3=90$, compute $u^2+v^2$. Write your answer as a decimal rounded to the nearest hundredth.",
    r"A cylinder has the same surface area as a sphere of radius 6, and its height equals its diameter. Find the ratio of their volumes, which can be written in the form $\frac{m}{n}$ with $m$ and $n$ relatively prime positive integers. What is $m+n$?",
    r"Given that $\log_2(x)$, $\log_4(x+2)$ and $\log_8(x+14)$ form an arithmetic progression, determine all real $x$. Enter your answers as a comma-separated list.",
    r"Write a function that returns the number of subsets of a list whose sum is even. Since the answer may be very large, return it modulo $10^9+7$.",
    r"Alice rolls a fair die until every face has appeared. The probability that it takes exactly eight rolls is $\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find the remainder when $m+n$ is divided by $1000$.",
    r"Points $P$ and $Q$ trisect the hypotenuse of a right triangle with legs 12 and 15. Find the sum of squares of the segments from the right angle to them. Give your answer to the nearest whole number.",
    r"Let $f(n)$ be the number of ones in the binary form of $n$. Find the value of the sum of $f(k)$ over all $k$ from 1 to 127. Express your answer as an integer.",
)
"""What a training pool may hold."""

BOILERPLATE_ONLY = (
    r"The sum of the reciprocals of the distances from a vertex of a cube of edge 4 to the other corners on its faces can be written as $\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find $m+n$.",
    r"Two hikers leave camp at random moments between noon and one, and each waits ten minutes. The probability that they meet can be written as $\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find $m+n$.",
    r"A convex pentagon has perimeter 41, and a point inside splits it into triangles of equal area. The least possible side can be expressed as $\frac{p}{q}$, where $p$ and $q$ are relatively prime positive integers. Find $p+q$.",
    r"Let $M$ be the number of five-letter strings over $\{A,B,C\}$ with no two adjacent vowels. Find the remainder when $M$ is divided by $1000$.",
    r"Let $T$ be the product of all odd primes dividing $40!$. Find the remainder when $T$ is divided by $1000$.",
    r"A sphere is inscribed in a cone of height 24 and base radius 10. The area of their circle of contact is $a-b\sqrt{c}$ times $\pi$, where $a$, $b$, and $c$ are positive integers and $c$ is not divisible by the square of any prime. Find $a+b+c$.",
    r"Find the number of ordered pairs $(x, y)$ of positive integers such that $x^2 - y^2$ is the square of a prime below fifty.",
    r"What is the length of the shortest path on a box measuring 3 by 4 by 12 between opposite corners along its faces? Express your answer in simplest radical form.",
    r"A coin lands heads with chance one third. What is the probability that the fourth head comes on the ninth toss? Express your answer as a common fraction.",
    r"The rational function with poles at 2 and 5 and a double zero at the origin has a slant asymptote. Find the value of $k$ for which it passes through the point with ordinate twelve. Express your answer as an integer.",
    r"Please reason step by step, and put your final answer within \boxed{}. A ladder 13 metres long slides down a wall; how fast does its foot move when the top is 5 metres up?",
    r"Solve the following math problem efficiently and clearly. The last line of your response should be of the following format: seventeen students share ninety cookies so that all counts differ; find the largest minimum. Please reason step by step, and put your final answer within \boxed{}.",
    r"Find all integers $n$ for which $n^4+4$ is prime or a perfect square. Enter your answers as a comma-separated list. Let's think step by step and put the final answer within \boxed{}.",
    r"A rhombus with diagonals 30 and 16 rolls once along a line. Its centre travels a path of length $r\sqrt{s}$, where $r$ and $s$ are positive integers and $s$ is not divisible by the square of any prime. Find $r+s$.",
    r"The generating function of a walk on a hexagon returns after eight steps in $W$ ways. Find the last three digits of your count.",
    r"A merchant mixes teas at 4 and 7 crowns into a blend sold at 5. Find the fraction of the dearer tea. Write your answer as a decimal rounded to the nearest hundredth.",
    r"Write a function that returns the length of the longest palindrome that can be erased from a string. Since the answer may be very large, return it modulo $10^9+7$.",
    r"Let $b_1=5$ and $b_{n+1}=3b_n+4$ for all $n\ge 1$. Find the remainder when $b_{77}$ is divided by $1000$.",
    r"Nine cards numbered 1 to 9 are dealt to three players. The probability that all three sums are odd is $\frac{p}{q}$, where $p$ and $q$ are relatively prime positive integers. Find $p+q$.",
    r"A chord of length 16 lies 6 from the centre of a circle, and a square stands on it outside. Find the area outside the circle. Give your answer to the nearest whole number.",
    r"For how many bases does the numeral 121 denote a perfect cube plus one? The ratio of the first two, in lowest terms, can be written in the form $\frac{m}{n}$ with $m$ and $n$ relatively prime positive integers. What is $m+n$?",
    r"The median to the longest side of a triangle with sides 13, 14, 15 is extended by its own length. The area swept can be written as $\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find the remainder when $m+n$ is divided by $1000$.",
    r"Let $g(n)$ be the number of trailing zeros of $n$ factorial. Find the value of the sum of $g(k)$ over all $k$ from 1 to 50. Express your answer as an integer.",
    r"A point is chosen at random inside a unit disc. Its mean distance from the rim can be written as $\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find $m+n$.",
    r"The slope of a line tangent to both parabolas can be expressed as $\frac{p}{q}$, where $p$ and $q$ are relatively prime positive integers. Find $p+q$.",
    r"Three numbers in harmonic progression add to eleven and their squares add to forty-nine. Find the largest. Express your answer in simplest form.",
)
"""Evaluation items that share phrases, and nothing else, with TRAINING and with each other."""

COPIES = (
    (
        "A baker sells muffins for $2.50 each and loaves for $4. On Monday she sold 18 muffins and twice as many loaves as on Sunday, when she sold 7. How much money did she take in on Monday?",
        "A baker sells muffins for $3 each and loaves for $5. On Monday she sold 24 muffins and twice as many loaves as on Sunday, when she sold 9. How much money did she take in on Monday?",
    ),
    (
        r"Let $P$ be a point inside rectangle $ABCD$ with $PA=6$, $PB=7$ and $PC=9$. What is the length of segment $PD$?",
        "LET  P  BE A POINT INSIDE RECTANGLE ABCD\nWITH PA = 6, PB = 7 AND PC = 9.\n\nWHAT IS THE LENGTH OF SEGMENT PD ?",
    ),
    (
        r"Compute the value of $\dfrac{3}{4}+\left(\frac{5}{6}-\frac{1}{3}\right)\cdot 12$ and explain which operation has to come first.",
        "Compute the value of 3/4 + (5/6 - 1/3) * 12 and explain which operation has to come first.",
    ),
    (
        "A reservoir holds 1,250,000 litres of water. Each day the town below it draws 18,500 litres while rain adds 6,000. After how many full days will less than half of the water be left?",
        "A reservoir holds 1250000 litres of water.  Each day the town below it draws 18500 litres while rain adds 6000.  After how many full days will less than half of the water be left?",
    ),
    (
        r"Suppose that $x^{2}+y^{2} \leq 25$ and $x\geq y$. Find the greatest possible value of $3x+4y$ over all such real numbers, and say where it is attained.",
        "suppose that x^2 + y^2 ≤ 25 and x ≥ y. find the greatest possible value of 3x+4y over all such real numbers, and say where it is attained",
    ),
    (
        "Marta reads 12 pages on the first evening and 5 more on each evening after that. Her book has 420 pages. On which evening does she finish the book?",
        "Translate nothing, just solve: Marta reads 15 pages on the first evening and 4 more on each evening after that. Her book has 390 pages. On which evening does she finish the book? Show your work.",
    ),
    (
        r"Three ants start at the corners of an equilateral triangle with side $60$ cm and walk towards each other at $4$ cm per second. How long do they walk until they meet at the centre?",
        r"Three ants start at the corners of an equilateral triangle with side \(90\text{ cm}\) and walk towards each other at \(5\text{ cm}\) per second. How long do they walk until they meet at the centre?",
    ),
    (
        "A parking lot charges $3 for the first hour and $1.75 for every hour or part of an hour after it. Nadia left her car at 8:40 and came back at 15:10. What did she pay?",
        "Q: A parking lot charges $4 for the first hour and $2.25 for every hour or part of an hour after it. Nadia left her car at 9:20 and came back at 17:05. What did she pay?\nA:",
    ),
    (
        r"The vertices of a parallelogram are $(1,2)$, $(7,4)$ and $(3,9)$ in some order together with a fourth point. Find the sum of the coordinates of every possible fourth point. Express your answer as an integer.",
        r"The vertices of a parallelogram are \( (1, 2) \), \( (7, 4) \), and \( (3, 9) \) in some order together with a fourth point; find the sum of the coordinates of every possible fourth point.",
    ),
    (
        r"A cube of edge $n$ is painted on all faces and cut into unit cubes. The number with exactly one painted face is twice the number with none, so that $n$ can be found. Determine $n$, and show that there is no other solution. Find the remainder when $n^{10}$ is divided by $1000$.",
        "A cube of edge n is painted on all faces and cut into unit cubes.   The number with exactly one painted face is twice the number with none, so that n can be found.  Determine n, and show that there is no other solution.",
    ),
    (
        "Each of 14 friends shakes hands with every friend who is taller than him, and no two are equally tall. How many handshakes are there when the two shortest leave before the greeting begins?",
        "here is the exercise: each of 20 friends shakes hands with every friend who is taller than him and no two are equally tall how many handshakes are there when the two shortest leave before the greeting begins",
    ),
    (
        r"In triangle $ABC$ the angle at $A$ is $60^\circ$, $AB=8$, and the circumradius equals $7$. The length of $BC$ can be written as $m\sqrt{n}$, where $m$ and $n$ are positive integers and $n$ is not divisible by the square of any prime. Find $m+n$.",
        "In triangle ABC the angle at A is 60 degrees, AB = 8, and the circumradius equals 7. Find BC.",
    ),
)
"""(evaluation item, the copy of it that a training pool holds): other numbers, spacing, case or LaTeX, the same item."""
