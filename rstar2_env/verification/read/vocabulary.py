"""The words that may stand next to a number without changing it: counted things and remarks.

Covered: nouns that word problems count (``counted.txt``, made from data by ``tools/counted_words.py``), remarks such as
"per day" and "in total", their most frequent counterparts in the languages of MGSM, and the nouns of the gold answer
and the question. Any other word may change the number ("lakh", "twice", "in hex"), so an answer with it is refused.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

from rstar2_env.verification.read.names import DENIALS, word_set
from rstar2_env.verification.read.units import read_unit, singular

COUNTED_FILE = Path(__file__).with_name("counted.txt")
MAX_WORDS = 8
"""Longest remark next to a number, in words."""

_REMARKS = word_set(
    """
    a about after ago all alone along already altogether an approx approximately are as at atom atoms away be
    because been before being both by cell cells clock combined day deep during each electron electrons entire
    every exactly extra far for from further good had has have he her high his hour i in into ion ions is it item
    items its left long longer minute molecule molecules month more my needed now of old older on ones only onto
    our overall own particle particles people per person piece pieces point points received remaining required
    respectively roughly same she so spent still tall that the their them then there these they this those through
    time times to today together total unit units up us used was we week were when which while who wide will with
    worth year years yet you your
    """
)
"""Words that add no quantity."""

_LABELS = word_set(
    """
    altitude amount and angle answer antwort are area at average base be being both case center centre choice
    circle circumference closed coefficient coefficients common coordinates correct cost count criterion curve
    decimal degree derivative determinant diagonal diameter difference dimension direction discriminant distance
    domain eigenvalue eigenvalues element elements ellipse equal equals equation equilibrium exact exactly
    expected expression factor factors final find focus following formula fraction fractions function general get
    given graph greatest height hence here hypotenuse identity inequality integer integers integral intercept
    interval inverse is jibu largest least length limit line lowest matrices matrix max maximum mean measure
    median midpoint min minimum mode money now number numbers obtain option order ordered pair pairs parabola part
    particular percent percentage perimeter period plane polynomial population possible price probability problem
    product quantity question quotient radius range rate ratio real reduced remainder respuesta result root roots
    réponse sequence series set side sides simplest simplified slope smallest solution solutions special speed
    square standard sum surface term terms therefore thus transpose triangle true tuple value values variance
    vector velocity vertex volume was weight width with x y z zero ответ উত্তর సమాధానం คำตอบ 答 答え 答案
    """
)
"""Names of quantities and of parts of an answer, as in "the area is 5" and "Answer: 5"."""
_OTHER_LANGUAGES = word_set(
    """
    dólar dólares euro euros peso pesos huevo huevos año años hora horas taza tazas niño niños persona
    personas vez veces galleta galletas página páginas libro libros minuto minutos segundo segundos día días
    semana semanas mes meses metro metros kilómetro kilómetros manzana manzanas punto puntos estudiante
    estudiantes alumno alumnos pieza piezas por en total más al cada de œuf œufs an ans année années heure
    heures élève élèves personne personnes enfant enfants fois biscuit biscuits mètre mètres kilomètre
    kilomètres jour jours semaine semaines mois livre livres pomme pommes tasse tasses pièce pièces point
    points page pages minute minutes seconde secondes par au chaque plus dollar ei eier jahr jahre alt stunde
    stunden schüler seite seiten kilometer stück minute minuten sekunde sekunden apfel äpfel mal tag tage
    tagen woche wochen monat monate meter buch bücher tasse tassen kind kinder person personen punkt punkte
    pro insgesamt jeden mehr доллар доллара долларов евро рубль рубля рублей яйцо яйца яиц год года лет час
    часа часов ученик ученика учеников страница страницы страниц минута минуты минут секунда секунды секунд
    день дня дней неделя недели недель месяц месяца месяцев метр метра метров километр километра километров км
    раз раза шт штука штуки штук печенье печений яблоко яблока яблок книга книги книг человек человека чашка
    чашки чашек балл балла баллов в всего каждый dola mayai yai miaka mwaka saa kurasa watu mtu dakika vikombe
    kikombe shilingi siku wiki miezi mwezi vitabu kitabu maili kilomita mita mara kwa jumla watoto wanafunzi
    tufaha ডলার টি বছর ঘন্টা ঘণ্টা টাকা জন মিনিট দিন সপ্তাহ মাস কিলোমিটার মিটার পৃষ্ঠা বই টা খানা డాలర్లు
    గుడ్లు సంవత్సరాలు గంటలు రూపాయలు పేజీలు మంది నిమిషాలు రోజులు వారాలు నెలలు కిలోమీటర్లు మీటర్లు సార్లు
    పుస్తకాలు ดอลลาร์ ฟอง ปี ชั่วโมง บาท หน้า คน นาที กิโลเมตร เมตร ครั้ง วัน สัปดาห์ เดือน เล่ม ลูก ใบ ชิ้น
    แก้ว
    """
)
"""Counted things and remarks of the other languages of MGSM that separate words by spaces."""

_COUNTER = re.compile(
    r"(?:每[天个人小时周月年]|共|总共|一共|[个個只隻本页頁天岁歳歲年周週月日时時分秒块塊元角円人名位张張条條件杯瓶盒袋包箱枚冊种種匹頭头台辆輛朵棵颗顆根支份次回場场"
    r"层層排组組双雙对對套间間座家所里米斤克克升亩吨]|小时|小時|時間|分钟|分鐘|美元|美金|公里|公斤|千米|千克|英里|英寸|英尺|厘米|毫升|百米|平方米|ドル|ページ|キロ|マイル|メートル|センチ|"
    r"グラム|ポンド|リットル|です)"
)
"""A counting word or unit of Chinese or Japanese."""
_CHANGING_SIGNS = frozenset("以超未約约不非半于於至最倍万億亿千百十零一二三四五六七八九兆割成折负負或和")
"""Signs that change a number, in scripts without spaces between words."""
_NUMBER = r"(?<![\w.])[$€£]?\d[\d,]*(?:\.\d+)?"
_BESIDE_NUMBER = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_NUMBER}[\s-]*([^\W\d_]+)(?:-([^\W\d_]+))?",
        rf"([^\W\d_]+)\s+{_NUMBER}",
        r"\b(?:how\s+many|how\s+much|number\s+of|amount\s+of)\s+(?:more\s+)?([^\W\d_]+)(?:\s+([^\W\d_]+))?",
    )
)
"""Find the words next to a number, and those that a question asks to count."""
_WORD = re.compile(r"[^\W\d_]+(?:[\u0300-\u036f\u0900-\u0d7f\u0e31-\u0e4e]+[^\W\d_]*)*")
_FORMULA = re.compile(r"(?:[A-Z][a-z]?){2,}")
"""A chemical formula without numbers, such as ``NaCl``."""
_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@cache
def _counted() -> frozenset[str]:
    return word_set(COUNTED_FILE.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def known_words(gold: str, question: str | None) -> frozenset[str]:
    """Return the words that the gold answer has and those that the question counts, in lower case and singular."""
    words = set(_WORD.findall(gold.lower()))
    if question:
        asked = question.lower()
        words.update(word for each in _BESIDE_NUMBER for found in each.finditer(asked) for word in found.groups(""))
    return frozenset(filter(None, map(singular, words - DENIALS)))


def names_things(text: str, known: frozenset[str] = frozenset()) -> bool:
    """Return whether the words next to a number only name what is counted, and do not change the number.

    Args:
        text: The words.
        known: Further words to accept, from ``known_words``.
    """
    words = [word if _FORMULA.fullmatch(word) else word.lower() for word in _WORD.findall(text)]
    if not 0 < len(words) <= MAX_WORDS or any(char.isdigit() for char in text):
        return False
    return all(_is_known(word, known) for word in words)


def unknown_in_label(text: str, known: frozenset[str], question: str | None) -> str | None:
    """Return the first word of a label that is neither a name of a quantity nor a word of the gold or the question.

    Args:
        text: The label.
        known: Further words to accept, from ``known_words``.
        question: The question; ``None`` if it is not known.
    """
    asked: set[str] = set(_WORD.findall((question or "").lower()))
    words: list[str] = _WORD.findall(text.lower())
    for word in words:
        is_letter = len(word) == 1 and word.isascii()
        if not (is_letter or word in asked or word in _LABELS or _is_known(word, known)):
            return word
    return None


def same_things(gold: str, answer: str, known: frozenset[str]) -> bool:
    """Return whether two names of counted things agree: the words of one are among those of the other.

    Singular and plural are the same; additional words must not be units.

    Args:
        gold: The words next to the gold number.
        answer: The words next to the number to grade.
        known: Further words to accept, from ``known_words``.
    """
    one, other = ({singular(word) for word in _WORD.findall(text.lower())} for text in (gold, answer))
    if one == other:
        return bool(one)
    if not names_things(answer, known) or not one & other or not (one <= other or other <= one):
        return False
    return not any((unit := read_unit(word)) is not None and unit.dimension for word in one ^ other)


def _is_known(word: str, known: frozenset[str]) -> bool:
    if _SPACELESS.search(word):
        return _COUNTER.match(word) is not None and not _CHANGING_SIGNS & {*_COUNTER.sub("", word)}
    if word in _REMARKS or word in _OTHER_LANGUAGES or _FORMULA.fullmatch(word):
        return True
    single = singular(word)
    if single in known or {word, single, f"{word}s"} & _counted():
        return True
    unit = read_unit(word)
    return unit is not None and bool(unit.dimension)
