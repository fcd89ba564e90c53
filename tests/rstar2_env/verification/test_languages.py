"""Short answers in the languages of MGSM: numbers with their units, however a language writes them."""

from __future__ import annotations

import pytest

from rstar2_env.verification import verify

# Each is 18.
SAID = {
    "en": [
        "18 dollars",
        "$18",
        "18 eggs",
        "18 years old",
        "18 hours",
        "18 cups",
        "18 pounds",
        "18 more",
        "18 people",
        "$18.00",
        "18 dollars per day",
        "18 pages",
        "18 minutes a day",
        "18 miles per hour",
        "18 of them",
        "18 students in total",
        "eighteen",
        "18 DVDs",
        "\\boxed{18}",
        "exactly 18",
        "18 left",
        "18 times",
    ],
    "es": [
        "18 dólares",
        "18 huevos",
        "18 años",
        "18 horas",
        "18 tazas",
        "18 euros",
        "$18",
        "18 páginas por día",
        "18 km",
        "18 niños",
        "18 veces",
        "18 galletas más",
        "18 kilómetros por hora",
        "18 minutos",
    ],
    "fr": [
        "18 dollars",
        "18 $",
        "18 œufs",
        "18 ans",
        "18 heures",
        "18 €",
        "18 élèves",
        "18 pages par jour",
        "18 km/h",
        "18 minutes",
        "18 fois",
        "18 biscuits",
        "18 mètres",
    ],
    "de": [
        "18 Dollar",
        "18 Eier",
        "18 Jahre",
        "18 Jahre alt",
        "18 Stunden",
        "18 €",
        "18 Schüler",
        "18 Seiten pro Tag",
        "18 Kilometer",
        "18 Stück",
        "18 Minuten",
        "18 Äpfel",
        "18 Mal",
        "18 USD",
        "18 Euro",
    ],
    "ru": [
        "18 долларов",
        "18 яиц",
        "18 лет",
        "18 часов",
        "18 рублей",
        "18 страниц в день",
        "18 км",
        "18 учеников",
        "18 минут",
        "$18",
        "18 раз",
        "18 шт.",
        "18 печений",
    ],
    "zh": [
        "18美元",
        "18 美元",
        "18个",
        "18個",
        "18岁",
        "18 岁",
        "18小时",
        "18元",
        "18页",
        "18只",
        "18人",
        "每天18美元",
        "18 分钟",
        "18 公里",
        "18块",
        "共18个",
        "18天",
        "18本书",
        "18。",
    ],
    "ja": [
        "18ドル",
        "18個",
        "18歳",
        "18時間",
        "18円",
        "18ページ",
        "18人",
        "18分",
        "18匹",
        "18 km",
        "18本",
        "18枚",
        "18回",
        "18です",
        "18ドルです",
    ],
    "th": [
        "18 ดอลลาร์",
        "18 ฟอง",
        "18 ปี",
        "18 ชั่วโมง",
        "18 บาท",
        "18 หน้า",
        "18 คน",
        "18 นาที",
        "18 กิโลเมตร",
        "18 ครั้ง",
        "๑๘",
    ],
    "sw": [
        "dola 18",
        "18 dola",
        "mayai 18",
        "miaka 18",
        "saa 18",
        "kurasa 18",
        "watu 18",
        "dakika 18",
        "$18",
        "Dola 18",
        "vikombe 18",
        "Shilingi 18",
    ],
    "bn": ["18 ডলার", "১৮ ডলার", "১৮", "18টি", "১৮টি", "18 বছর", "১৮ ঘন্টা", "18 টাকা", "১৮ জন", "18 মিনিট"],
    "te": ["18 డాలర్లు", "$18", "18 గుడ్లు", "18 సంవత్సరాలు", "18 గంటలు", "18 రూపాయలు", "18 పేజీలు", "18 మంది", "18 నిమిషాలు"],
}

WRITTEN = [
    *(
        ("1500", text)
        for text in ("1,500", "1.500 €", "1 500 €", "1.500 Euro", "$1,500", "1500元", "1,500ドル", "US$1500")
    ),
    *(("1500", text) for text in ("1 500 рублей", "１５００", "1’500 Franken", "1500 dólares.", "1.500 euros")),
    *(("2.5", text) for text in ("2,5 horas", "2.5小时", "2,5 Stunden", "2,50 €", "2½")),
    *(
        ("18", text)
        for text in (r"\text{18 euros}", r"18\text{ dólares}", r"18\text{個}", r"\text{18個}", r"18 \, \text{元}")
    ),
]

# None of these is 18.
OTHERS = (
    "19 dólares;18 o 19;18或19;18 ou 19;1.8万;18万;18 oder 20;не 18;不是18;18以下;18以上;mehr als 18;18 ni 19;约18;"
    "about 18;18 y medio;18 mil;18 millones;"
    "18 mille;18 миллионов;18 тысяч;18 Millionen;18千;18 cientos;18 hundert;18 docenas;"
    "18 Dutzend;18 дюжин;18打;大于18;18 лет и 5 месяцев;kein 18;unter 18;18个半;fast 18;casi 18;почти 18;zaidi 18"
)


@pytest.mark.parametrize(("language", "text"), [(name, text) for name, texts in SAID.items() for text in texts])
def test_a_number_is_read_with_the_units_of_its_language(language: str, text: str) -> None:
    assert verify("18", text, timeout_s=10.0).correct


@pytest.mark.parametrize(("gold", "text"), WRITTEN)
def test_a_number_is_read_as_its_language_writes_it(gold: str, text: str) -> None:
    assert verify(gold, text, timeout_s=10.0).correct


@pytest.mark.parametrize("text", OTHERS.split(";"))
def test_another_number_is_not(text: str) -> None:
    assert not verify("18", text, timeout_s=10.0).correct
