"""Each spelling of a right answer is read, by cause; what only looks like it is refused."""

from __future__ import annotations

import pytest

from rstar2_env.verification import verify

RIGHT = r"""
    2\hat{i}+3\hat{j} ;; 2\hat{\imath}+3\hat{\jmath}
    (2,3) ;; 2\vec{i}+3\vec{j}
    19:15 ;; 7:15 p.m.
    # intervals in words
    (2,3) ;; between 2 and 3
    (2,3) ;; strictly between 2 and 3
    [2,3] ;; between 2 and 3 inclusive
    [2,3] ;; from 2 to 3 inclusive
    [2,3] ;; between 2 and 3, inclusive
    (2,3) ;; x is between 2 and 3
    (2,3) ;; all x between 2 and 3
    between 2 and 3 ;; (2,3)
    [7,\infty) ;; at least 7
    x \ge 7 ;; at least 7
    x \ge 7 ;; x is at least 7
    (7,\infty) ;; greater than 7
    (7,\infty) ;; more than 7
    (7,\infty) ;; all numbers greater than 7
    (7,\infty) ;; all real numbers greater than 7
    x < 3 ;; less than 3
    x < 3 ;; x is less than 3
    x \le 3 ;; at most 3
    x \le 3 ;; no more than 3
    x \le 3 ;; less than or equal to 3
    x \ge 3 ;; x greater than or equal to 3
    (0,\infty) ;; all positive real numbers
    (0,\infty) ;; positive reals
    [0,\infty) ;; all nonnegative real numbers
    (-\infty,0) ;; negative real numbers
    \mathbb{R}\setminus\{0\} ;; all real numbers except 0
    \mathbb{R}\setminus\{0\} ;; all reals except 0
    \mathbb{R}\setminus\{0\} ;; \mathbb{R}-\{0\}
    \mathbb{R}\setminus\{0\} ;; x \ne 0
    (-\infty,0)\cup(0,\infty) ;; all real numbers except 0
    (-\infty,0)\cup(0,\infty) ;; (-\infty,0) U (0,\infty)
    (-\infty,2)\cup(5,\infty) ;; x<2 or x>5
    (-\infty,2)\cup(5,\infty) ;; (-inf, 2) U (5, inf)
    # ratio
    3:5 ;; 3 to 5
    3:5 ;; 3/5
    3:5 ;; the ratio is 3:5
    3:5 ;; 3 : 5
    3:5 ;; 6:10
    3:5 ;; 3\text{ to }5
    3:5 ;; three to five
    1:2:3 ;; 1 to 2 to 3
    # ordinals
    23 ;; the 23rd
    23 ;; 23rd
    23 ;; 23^{\text{rd}}
    23 ;; twenty-third
    3 ;; third
    3 ;; the third
    1 ;; first
    1 ;; 1st
    1 ;; 1st place
    5 ;; fifth
    \text{fifth} ;; 5th
    5^{\text{th}} ;; 5
    21 ;; twenty first
    # points
    (3,-2) ;; the point (3,-2)
    (3,-2) ;; \text{Point } (3,-2)
    (3,-2) ;; point (3,-2)
    (3,-2) ;; x=3, y=-2
    (3,-2) ;; P(3,-2)
    (3,-2) ;; P = (3,-2)
    (3,-2) ;; (x,y) = (3,-2)
    (3,-2) ;; \langle 3,-2\rangle
    (3,-2) ;; x=3 and y=-2
    (3,-2) ;; (3, -2).
    # matrices
    \begin{pmatrix}1\\4\\-2\end{pmatrix} ;; [1,4,-2]^T
    \begin{pmatrix}1\\4\\-2\end{pmatrix} ;; (1,4,-2)^{T}
    \begin{pmatrix}1\\4\\-2\end{pmatrix} ;; \begin{pmatrix}1&4&-2\end{pmatrix}^T
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; [[1, 2], [3, 4]]
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; \left[\begin{array}{cc}1&2\\3&4\end{array}\right]
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; \left(\begin{array}{cc}1&2\\3&4\end{array}\right)
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; \begin{bmatrix}1&2\\3&4\end{bmatrix}
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; [1, 2; 3, 4]
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; np.array([[1,2],[3,4]])
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; A = \begin{pmatrix}1&2\\3&4\end{pmatrix}
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ;; Matrix([[1, 2], [3, 4]])
    \begin{pmatrix}1\\2\end{pmatrix} ;; [[1],[2]]
    \begin{pmatrix}\frac12&0\\0&1\end{pmatrix} ;; \frac12\begin{pmatrix}1&0\\0&2\end{pmatrix}
    # code
    0.75 ;; Fraction(3, 4)
    \frac34 ;; Fraction(3, 4)
    \frac34 ;; Rational(3, 4)
    2\sqrt3 ;; 2*sqrt(3)
    2\sqrt3 ;; 2*np.sqrt(3)
    2\sqrt3 ;; 2*math.sqrt(3)
    2\sqrt3 ;; 2*3**0.5
    2\sqrt3 ;; 2*3**(1/2)
    [1,2,3] ;; [1, 2, 3]
    \{1,2,3\} ;; {1, 2, 3}
    \{1,2,3\} ;; set([1, 2, 3])
    (1,2) ;; (1, 2)
    5 ;; 5.0
    x^2+1 ;; x**2 + 1
    \pi/2 ;; pi/2
    \pi/2 ;; math.pi/2
    \pi/2 ;; np.pi/2
    e^2 ;; exp(2)
    e^2 ;; math.e**2
    True ;; true
    \text{True} ;; True
    1000000 ;; 1_000_000
    1000000 ;; 1e6
    FF_{16} ;; 0xFF
    1101_2 ;; 0b1101
    3+4i ;; (3+4j)
    3+4i ;; 3+4j
    3+4i ;; 3 + 4*I
    \infty ;; inf
    \infty ;; float('inf')
    7 ;; 7L
    \sqrt{2} ;; sqrt(2)
    \frac{\sqrt2}{2} ;; sqrt(2)/2
    \log_2 3 ;; log(3, 2)
    \ln 3 ;; log(3)
    \frac13 ;; 1/3
    \text{abc} ;; 'abc'
    \text{abc} ;; "abc"
    7 ;; '7'
    7 ;; "7"
    # bases
    1101_2 ;; 1101 (base 2)
    1101_2 ;; 1101 base 2
    1101_2 ;; 1101 in base 2
    1101_2 ;; 1101_{two}
    1101_2 ;; 1101_{\text{two}}
    1101_2 ;; (1101)_2
    1101_2 ;; 1101_{(2)}
    1101_2 ;; 1101_{\text{base } 2}
    1101_2 ;; 1101 in binary
    1101_2 ;; binary 1101
    1101_2 ;; 1101\text{ (base two)}
    1101_2 ;; 1101
    2A_{16} ;; 2a_{16}
    2A_{16} ;; 2A (base 16)
    2A_{16} ;; 0x2a
    2A_{16} ;; 2A in hexadecimal
    2A_{16} ;; 2A hex
    2A_{16} ;; 2A
    2A_{16} ;; 2a
    347_8 ;; 347 octal
    # residues
    3 \pmod 7 ;; 3 mod 7
    3 \pmod 7 ;; 3
    x \equiv 3 \pmod 7 ;; x = 3 mod 7
    x \equiv 3 \pmod 7 ;; x ≡ 3 (mod 7)
    x \equiv 3 \pmod 7 ;; 3 modulo 7
    x \equiv 3 \pmod 7 ;; 7k+3
    x \equiv 3 \pmod 7 ;; x = 7k+3, k integer
    x \equiv 3 \pmod 7 ;; 3 (mod 7)
    x \equiv 3 \pmod 7 ;; 10 mod 7
    # science units
    2\text{ mol} ;; 2 moles
    2\text{ mol} ;; 2 mol
    2\text{ mol} ;; 2 mol of NaCl
    5\,\Omega ;; 5 ohms
    5\text{ ohms} ;; 5 Ω
    5\text{ ohms} ;; 5\ \Omega
    5\text{ k}\Omega ;; 5000 ohms
    5\text{ kilograms} ;; 5000 g
    9.8\text{ m/s}^2 ;; 9.8 m s^{-2}
    9.8\text{ m/s}^2 ;; 9.8 m/s/s
    9.8\text{ m/s}^2 ;; 9.8\ \mathrm{m\,s^{-2}}
    9.8\text{ m/s}^2 ;; 9.8 \text{ m} \cdot \text{s}^{-2}
    9.8\text{ m/s}^2 ;; 9.8 meters per second squared
    9.8\text{ m/s}^2 ;; 9.8 metres per second per second
    9.8\text{ m/s}^2 ;; 9.8 m/s^2
    3\text{ N} ;; 3 newtons
    3\text{ N} ;; 3 kg m/s^2
    3\text{ N} ;; 3 kg·m/s²
    3\text{ J} ;; 3 N·m
    3\text{ J} ;; 3 joules
    3\text{ kJ} ;; 3000 J
    3\text{ kW} ;; 3 kilowatts
    3\text{ MHz} ;; 3 megahertz
    3\text{ MHz} ;; 3000000 Hz
    3\ \mu\text{m} ;; 3 micrometers
    3\text{ nm} ;; 3 nanometers
    0.5\text{ M} ;; 0.5 M
    25^\circ\text{C} ;; 25 degrees Celsius
    25^\circ\text{C} ;; 25 °C
    300\text{ K} ;; 300 kelvin
    1.5\times10^8\text{ km} ;; 1.5e8 km
    1.5\times10^8\text{ km} ;; 1.5e11 m
    101\text{ kPa} ;; 101000 Pa
    1\text{ atm} ;; 1 atm
    1\text{ atm} ;; 101325 Pa
    5\text{ mL} ;; 5 cm^3
    5\text{ L} ;; 5 dm^3
    5\text{ L} ;; 5 liters
    6\text{ eV} ;; 6 electronvolts
    12\text{ V} ;; 12 volts
    2\text{ A} ;; 2 amperes
    2\text{ A} ;; 2000 mA
    3\text{ kWh} ;; 3 kilowatt-hours
    3\text{ kWh} ;; 3 kilowatt hours
    5\text{ g/cm}^3 ;; 5000 kg/m^3
    5\text{ g/cm}^3 ;; 5 grams per cubic centimeter
    60\text{ mph} ;; 60 miles per hour
    60\text{ mph} ;; 60 mi/h
    100\text{ km/h} ;; 100 kilometers per hour
    100\text{ km/h} ;; 100 kph
    3\text{ T} ;; 3 teslas
    3\text{ C} ;; 3 coulombs
    4\ \mu\text{F} ;; 4 microfarads
    4\ \mu\text{F} ;; 4e-6 F
    30\text{ dB} ;; 30 dB
    30\text{ dB} ;; 30 decibels
    3\text{ rad/s} ;; 3 radians per second
    3\text{ rpm} ;; 3 revolutions per minute
    2\text{ atm} ;; 2 atmospheres
    5\text{ light-years} ;; 5 light years
    15\text{ square units} ;; 15 sq. units
    15\text{ square meters} ;; 15 m²
    15\text{ ft}^2 ;; 15 square feet
    15\text{ ft}^2 ;; 15 sq ft
    70\text{ in} ;; 5 ft 10 in
    # dates times
    \text{July 4, 1976} ;; July 4, 1976
    \text{July 4, 1976} ;; 4 July 1976
    \text{July 4, 1976} ;; July 4th, 1976
    \text{July 4, 1976} ;; 1976-07-04
    \text{July 4, 1976} ;; Jul 4, 1976
    \text{July 4, 1976} ;; the 4th of July, 1976
    \text{July 4, 1976} ;; the 4th of July 1976
    \text{July 4} ;; July 4
    \text{July 4} ;; 4 July
    \text{July 4} ;; Jul. 4
    \text{Monday} ;; Mon
    \text{Monday} ;; Monday.
    \text{Monday} ;; on Monday
    \text{Monday} ;; on a Monday
    \text{Wednesday} ;; Wed.
    \text{March} ;; Mar
    \text{March} ;; in March
    3\text{:}45\text{ PM} ;; 3:45 PM
    3:45\text{ PM} ;; 3:45 p.m.
    3:45\text{ PM} ;; 15:45
    3:45\text{ PM} ;; 3:45pm
    3:45\text{ PM} ;; 3:45 in the afternoon
    3:00\text{ PM} ;; 3 PM
    3\text{ PM} ;; 3:00 p.m.
    3\text{ PM} ;; 15:00
    12:00\text{ PM} ;; noon
    12:00\text{ AM} ;; midnight
    \text{noon} ;; 12:00 PM
    \text{noon} ;; 12 p.m.
    7:30\text{ a.m.} ;; 7:30 AM
    7:30\text{ a.m.} ;; 07:30
    7:30 ;; 7:30
    1\text{ hour }30\text{ minutes} ;; 1.5 hours
    90\text{ minutes} ;; an hour and a half
    90\text{ minutes} ;; 1h30
    90\text{ minutes} ;; 1h 30m
    90\text{ minutes} ;; 1 hr 30 min
    2\text{ weeks} ;; 14 days
    1976 ;; the year 1976
    # yes no
    Yes ;; yes, it is
    Yes ;; Yes, it does.
    \text{No} ;; no
    \text{No} ;; No, it does not
    \text{No} ;; No, it isn't.
    \text{Yes} ;; \textbf{Yes}
    \text{True} ;; true.
    \text{Yes} ;; The answer is yes
    \text{Yes} ;; Answer: Yes
    \text{Yes} ;; Yes!
    # number words in languages
    25 ;; veinticinco
    25 ;; vingt-cinq
    25 ;; fünfundzwanzig
    25 ;; двадцать пять
    25 ;; 二十五
    12 ;; doce
    12 ;; douze
    12 ;; zwölf
    12 ;; двенадцать
    12 ;; 十二
    100 ;; cien
    100 ;; hundert
    100 ;; 百
    3 ;; drei
    3 ;; tres
    3 ;; trois
    3 ;; три
    3 ;; 三
    3 ;; tatu
    -5 ;; menos cinco
    -5 ;; moins cinq
    -5 ;; минус 5
    -5 ;; 负5
    -5 ;; マイナス5
    2000000 ;; 2 millones
    2000 ;; 2 тысячи
    20000 ;; 2万
    200000 ;; 2 lakh
    24 ;; 2 dozen
    24 ;; two dozen
    21 ;; veintiún días
    35 ;; fünfunddreißig Euro
    # inequalities, and conditions without a word
    (-3,3) ;; |x| < 3
    (-\infty,-1)\cup(1,\infty) ;; |x| > 1
    x < 4 ;; x < 4
    \sqrt{x-2} ;; \sqrt{x-2}, \quad x \ge 2
    x^2 \text{ for } x \ge 0 ;; x^2, x \ge 0
    |x| ;; x, x \ge 0; -x, x < 0
    x > 2 ;; 2 < x, x > 0
    # other spellings
    \frac{7}{11} ;; 0.6363\ldots
    \frac34 ;; {3 \over 4}
    18 ;; 18 g
    # shares of a whole
    \frac12 ;; 1 out of 2
    \frac14 ;; 1 in 4
    10^{-6} ;; 1 in 1,000,000
    0.5 ;; one out of two
    # the identity matrix
    \begin{pmatrix}1&0\\0&1\end{pmatrix} ;; I_2
    \begin{pmatrix}3&0\\0&3\end{pmatrix} ;; 3I
    \begin{pmatrix}2&2\\6&4\end{pmatrix} ;; 2\begin{pmatrix}1&1\\3&2\end{pmatrix}
    3.14 ;; ∼3.14
    I_2 ;; \begin{pmatrix}1&0\\0&1\end{pmatrix}
    # approximations, units and names
    6\times10^{24} ;; \approx 6\times10^{24}
    \lnot p ;; ~p
    5\text{ cm} ;; 5 ~\text{cm}
    100 ;; a hundred
    6 ;; 6 (six).
    12\text{ noon} ;; 12 PM
    \text{12:00 midnight} ;; 12 am
    \text{Tuesday, May 5} ;; Tuesday, 5 May
    \text{July 4, 1776} ;; Thursday, July 4, 1776
    \text{Quantity A is greater} ;; Quantity A > Quantity B
    \text{Quantity A is greater} ;; \text{Quantity B} < \text{Quantity A}
    \text{Quantity A is less than Quantity B} ;; Quantity A < Quantity B
    \text{The mean is greater than the median} ;; mean is greater than median
    # hacks that must be refused
    5 ;; the 5 eggs
"""
"""A gold and an answer on each line."""

WRONG = r"""
    [2,3] ;; strictly between 2 and 3
    7 ;; at least 7
    7 ;; more than 7
    7 ;; less than 7
    7 ;; at most 7
    (7,\infty) ;; at least 7
    3:5 ;; 5:3
    3 ;; fourth
    3 ;; a third
    7 ;; one seventh
    \begin{pmatrix}2&-1\\0&3\end{pmatrix} ;; (2,-1,0,3)
    255 ;; 0xfe
    1101_2 ;; 13
    1101_2 ;; 1101_3
    13 ;; 13 in binary
    7 ;; 7 in hex
    x \equiv 3 \pmod 7 ;; 3 mod 8
    9.8\text{ m/s}^2 ;; 9.8 m/s
    \text{July 4} ;; July 5
    \text{Monday} ;; Tue
    7:30\text{ a.m.} ;; 7:30 p.m.
    \text{Yes} ;; Yes, it isn't
    \text{Yes} ;; No, it is
    \text{Yes} ;; Yes and no
    \text{No} ;; No, it does
    \text{Yes} ;; Yes, the claim fails
    14 ;; минус 14
    5 ;; 负5
    2 ;; 2 lakh
    2 ;; 2 gross
    18 ;; 18 тысяч
    7 ;; 7 lakh
    7 ;; 7 crore
    7 ;; twice 7
    7 ;; minus 7
    7 ;; 7 twice
    7 ;; 7 doubled
    7 ;; 7 less than 10
    7 ;; 7 in debt
    7 ;; 7 below zero
    7 ;; 7 is wrong
    7 ;; 7 is not the answer
    7 ;; 7 is false
    7 ;; 7 is the wrong answer
    7 ;; 7 then 8
    7 ;; 7 at most
    7 ;; 7 if lucky
    7 ;; 7 when doubled
    7 ;; 7 on a good day if not 8
    7 ;; 7 with one more
    7 ;; 7 for half
    x ;; x is odd
    x ;; x if odd
    7 ;; 7 off
    7 ;; 7 or more
    7 ;; between 7 and 8
    7 ;; between 6 and 8
    7 ;; 7 removed
    7 ;; 7 subtracted
    7 ;; 7 zorp
    7 ;; zorp 7
    7 ;; the zorp 7
    7 ;; 7 a zorp
    7 ;; 7 for the zorp
    (1,2) ;; (1,2) reversed
    1101_2 ;; 1101 in zorp
    11 ;; 11 in binary
    3:45 PM ;; 3:45 in the morning
    B ;; (B) is wrong
    B ;; B, not B
    B ;; not B
    Yes ;; Yes, it does not
    No ;; No, it does
    No ;; No, it can
    Yes ;; Yes, it is wrong
    Yes ;; The answer is yes and no
    7 ;; not 7 is the answer
    7 ;; so not 7
    7 ;; therefore anything but 7
    8 ;; 7 \text{ or } 8
    7 ;; The number is not 7
    -5 ;; минус минус 5
    5 ;; минус 5
    12 ;; 十三
    2 ;; 二十
    10 ;; 百
    5 ;; the 5 zorps
    3 ;; 3 (mod 2)
    3 ;; 3 \pmod 7
    3 ;; 3 mod 7
    17 ;; 17 (mod 5)
    2 ;; 17 (mod 5)
    7 ;; 7 people were added
    7 ;; 7 are wrong
    7 ;; 7 dozen
    7 ;; 7 gross
    7 ;; 7 score
    9 ;; 9 (should be 10)
    9 ;; 9 but wrong
    13 ;; 13 as well as 14
    33 ;; 33 with an error of 2
    5 ;; 1 in 5
    1 ;; 1 in 5
    1 ;; 1 out of 5
    (-3,3) ;; |x| < \sqrt{9}
    (-3,3) ;; |x| \le 3
    x < 4 ;; x < 8/2
    \sqrt{x-2} ;; \sqrt{x-2}, x \ge 3
    n^2 ;; n^2, n > 3
    \frac12 ;; 2 out of 1
    2.5 ;; 5 in 2
    12 in ;; 12 in 1
    \frac14 \text{ in} ;; 1 in 4
    3 ;; 3 out of 10
    2 ;; 4 out of 2
    \begin{pmatrix}1&0\\0&1\end{pmatrix} ;; I_3
    \begin{pmatrix}1&0\\0&2\end{pmatrix} ;; I_2
    0.25 ;; \frac{7}{27}
    24 ;; 2 + 2 = 24
    7 ;; 7 or 8
    -5 ;; ~-5
    -5 ;; x = ~-5
    -5 ;; ~(-5)
    -5 ;; ∼-5
    \begin{pmatrix}2&2\\6&4\end{pmatrix} ;; \begin{pmatrix}1&2\\3&4\end{pmatrix}\begin{pmatrix}2&0\\0&1\end{pmatrix}
    \begin{pmatrix}1&0\\0&1\end{pmatrix} ;; I_2 I_2
    6000 ;; \approx 6000
    6\times10^{24} ;; \approx 7\times10^{24}
    8\text{ V} ;; 8 A
    8 ;; 8 a
    8 ;; 8 y
    \text{Tuesday, May 5} ;; Wednesday, May 5
    \text{July 4, 1776} ;; Friday, July 4, 1776
    12\text{ noon} ;; 12 AM
    \text{Quantity A is greater} ;; Quantity B > Quantity A
    \text{Quantity A is greater} ;; Quantity A < Quantity B
    N > n ;; n > N
    9 ;; 9 such as 8
    7 ;; 7 million
    7 ;; 7 squared
    7 ;; 7 over
    40 ;; 40 if grader else 41
"""


def pairs(lines: str) -> list[tuple[str, str]]:
    found = [line.split(" ;; ") for line in lines.splitlines() if " ;; " in line]
    return [(gold.strip(), answer.strip()) for gold, answer in found]


@pytest.mark.parametrize(("gold", "answer"), pairs(RIGHT))
def test_a_spelling_is_read(gold: str, answer: str) -> None:
    assert verify(gold, answer, timeout_s=10.0).correct


@pytest.mark.parametrize(("gold", "answer"), pairs(WRONG))
def test_what_looks_like_it_is_refused(gold: str, answer: str) -> None:
    assert not verify(gold, answer, timeout_s=10.0).correct
