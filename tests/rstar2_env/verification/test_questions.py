"""Words of an answer that only the question gives a meaning, and labels on either side of a verb."""

from __future__ import annotations

import pytest

from rstar2_env.verification import verify

RATIO = "In what ratio are girls and boys here? What is the ratio of boys to girls in the class?"

RIGHT = [
    ("36", "The perimeter comes to 36 cm.", "What is the perimeter of the square, in cm?"),
    ("36", "the total amounts to 36", ""),
    ("36", "This adds up to 36.", ""),
    ("36", "That makes 36", ""),
    ("5", "n = 5 is the smallest", "What is the smallest n such that n^2 > 20?"),
    ("5", "5 is the smallest such integer", ""),
    ("5", r"x=5\text{ is the only solution}", ""),
    ("9", "nine such triples", "How many ordered triples (a, b, c) satisfy this?"),
    ("31", "31 digits", "How many digits does the number have?"),
    ("3", "3 real roots", "How many real roots does it have?"),
    ("350", "350 square feet of turf", "How many square feet of turf are needed for the yard?"),
    ("8", "an 8 km walk", "How long is the walk?"),
    ("12.25", "The rectangle has area 12.25 square inches.", "What is the area of the rectangle?"),
    ("12.25", "The rectangle has an area of 12.25 square inches.", "What is the area of the rectangle?"),
    ("12", "The change is a 12% decrease", "By what percent did the price decrease?"),
    ("12", "The answer is a total of 12.", ""),
    ("12", "a 12% decrease", "By what percent did the price decrease?"),
    (r"\frac12", "la mitad", ""),
    (r"\frac34", "drei Viertel", ""),
    ("12", "12 is the largest value of k", "What is the largest value of k?"),
    ("12", "the largest k is 12", "What is the largest value of k?"),
    ("90", "1.5 hours", "How many minutes does it take?"),
    ("118", "118 a week", "How many dollars does he spend in a week?"),
    ("x > 3", "the solution is x > 3", ""),
    ("-8\\%", "Sales fell by 8%.", "By what percent did sales change?"),
    ("8\\%", "Sales fell by 8%.", "By what percent did sales fall?"),
    ("-8", "Sales fell by 8%.", "What was the percent change in sales, to the nearest percent?"),
    ("-8", "The temperature dropped 8 degrees", "What is the change in temperature, in degrees?"),
    ("\\$8", "The price was reduced by $8.", "By how much was the price reduced?"),
    ("\\$8", "the cost is $8", ""),
    ("3:2", "the ratio is 3 to 2", ""),
    ("3:2", "The ratio of boys to girls is three to two.", "Find the ratio of boys to girls."),
    ("1:2:3", "the ratio is 1 to 2 to 3", ""),
    ("3:1", "the odds are 3 to 1", ""),
    ("3:2", "the ratio of girls to boys is 2:3", RATIO),
    ("3:2", "The ratio of girls to boys is two to three.", RATIO),
    (r"\frac32", "the ratio of girls to boys is 2/3", RATIO),
    ("8", "He lost 8 marbles.", "How many marbles did he lose?"),
    ("8", "Tom lost 8 marbles", "How many marbles did Tom lose?"),
    ("12", "ab = 12", ""),
]

WRONG = [
    ("36", "The perimeter comes to 36 cm more than the side.", "What is the perimeter of the square, in cm?"),
    ("36", "it tends to 36", ""),
    ("36", "it rounds to 36", ""),
    ("36", "it does not amount to 36", ""),
    ("5", "n = 5 is the wrong answer", ""),
    ("5", "5 is not the smallest", "What is the smallest n such that n^2 > 20?"),
    ("5", "5 is the smallest, or 7", "What is the smallest n?"),
    ("7", "7 tripled", "How many triples are there?"),
    ("7", "7 triple", "How many triples are there?"),
    ("7", "7 cubed", "How many cubes are there?"),
    ("9", "9 triples", "How large is it?"),
    ("350", "350 square feet of zorp", "How many square feet of turf are needed?"),
    ("12.25", "The rectangle has twice 12.25 square inches.", "What is the area of the rectangle?"),
    ("12.25", "The rectangle has half the area 12.25 square inches.", "What is the area of the rectangle?"),
    ("12", "twice a total of 12", ""),
    ("12", "half the total is 12", ""),
    ("12", "a 12 fold decrease", "By what percent did the price decrease?"),
    ("12", "a 12% decrease", "By what percent did the price increase?"),
    ("12", "a 12% decrease", "By what percent did the price increase or decrease?"),
    (r"\frac12", "la mitad de 14", ""),
    (r"\frac34", "three quarts", ""),
    ("12", "the largest value of k is not 12", "What is the largest value of k?"),
    ("12", "the largest value of k is over 12", "What is the largest value of k?"),
    ("13", "13 is even", "Which number is not even?"),
    ("13", "13 is not the number", "Which number is not even?"),
    ("13", "not the number is 13", "Which number is not even?"),
    ("12", "the empty set is 12", ""),
    ("12", r"\mathbb{R} = 12", ""),
    ("90", "90 hours", "How many minutes does it take?"),
    ("6.5", "6.5 square feet of carpet", "How many square meters of carpet does he need?"),
    ("8\\%", "Sales fell by 8%.", "By what percent did sales change?"),
    ("8\\%", "Sales fell by 8%.", "By what percent did sales rise?"),
    ("8\\%", "Sales fell by 8%.", "What percent of the sales is left?"),
    ("8\\%", "Sales fell by 8%.", ""),
    ("8\\%", "Sales never fell by 8%.", "By what percent did sales fall?"),
    ("8\\%", "Profits fell by 8%.", "By what percent did sales fall?"),
    ("8\\%", "Sales fell to 8%.", "By what percent did sales fall?"),
    ("3:2", "the ratio is 2 to 3", ""),
    ("3:2", "the ratio is not 3 to 2", ""),
    ("3:2", "the ratio went from 3 to 2", ""),
    ("3:2", "the ratio is 3 to 2 or 5 to 2", ""),
    ("3:2", "the ratio of girls to boys is 3:2", RATIO),
    ("3:2", "the ratio of the number of girls to the number of boys is 3 to 2", RATIO),
    ("3:2", "girls to boys is 3:2", RATIO),
    ("1.5", "the ratio of girls to boys is 1.5", RATIO),
    ("3:2", "twice the ratio of girls to boys is 2:3", RATIO),
    ("3:2", "the length is 3 to 2", ""),
    ("3:2", "the volume is three to two", ""),
    ("8", "He lost 8 marbles.", "How many marbles does he have?"),
    ("8", "Tom lost 8 marbles", "How many marbles did Ann lose?"),
    ("12", "yes = 12", ""),
    ("12", "12 = no", ""),
    ("12", "not = 12", ""),
]

AREA = "Find the area of A. The area of B is not asked for."
DEF = "Let DEF be a triangle. Find the area of triangle ABC."

LETTERS_AGREE = [
    ("x=5", "the value of x is 5", ""),
    ("x=5", "5 is the value of $x$", ""),
    (r"\theta=5", r"the value of $\theta$ is 5", ""),
    ("n=5", "the smallest n is 5", "What is the smallest n such that n^2 > 20?"),
    ("5", "the value of x is 5", "Find x."),
    ("5", "the value of $x$ is 5", "Find the value of $x$ if $y=2$."),
    ("12", "the area of A is 12", AREA),
    ("12", "12 is the area of $A$", AREA),
    ("12", "the area of triangle ABC is $12$", "Find the area of triangle $ABC$."),
    ("12", "the area of a circle is 12", ""),
    ("12", "12 is the area of the circle", "Find the area of circle B."),
    ("12", "THE ANSWER IS 12", ""),
]

LETTERS_DIFFER = [
    ("x=5", "the value of y is 5", ""),
    ("x=5", "5 is the value of $y$", ""),
    ("x=5", "the value of y is 5", "Find x."),
    ("x=5", "the value of a is $5$", "Find x."),
    ("x=5", "the square of x is 5", ""),
    (r"\theta=5", r"the value of $\phi$ is 5", ""),
    ("x=1, y=2", "the value of y is 1, the value of x is 2", ""),
    ("12", "the area of B is 12", AREA),
    ("12", "12 is the area of $B$", AREA),
    ("12", "the area of a is 12", AREA),
    ("12", "the perimeter of A is 12", AREA),
    ("12", "the area of triangle DEF is $12$", DEF),
    ("12", "the area of triangle DEF is 12", DEF),
    ("10", "the value of x is 10", "What is twice x?"),
    ("10", "the value of x is 10", "Find $x^2$."),
    ("10", "the value of x is 10", "Find x + y."),
    ("5", "the value of y is 5", "Let y = 2. What value of x is right?"),
    ("5", "the value of x is 5", "Find x. Then write down y."),
    ("5", "the value of k is 5", ""),
]


@pytest.mark.parametrize(("gold", "answer", "question"), [*RIGHT, *LETTERS_AGREE])
def test_an_answer_in_the_words_of_the_question_is_right(gold: str, answer: str, question: str) -> None:
    assert verify(gold, answer, question=question or None, timeout_s=10.0).correct


@pytest.mark.parametrize(("gold", "answer", "question"), [*WRONG, *LETTERS_DIFFER])
def test_words_that_change_a_value_are_refused_whatever_the_question_says(
    gold: str, answer: str, question: str
) -> None:
    assert not verify(gold, answer, question=question or None, timeout_s=10.0).correct
