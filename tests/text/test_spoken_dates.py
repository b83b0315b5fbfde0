"""Dates worked out from what somebody says: right ones are the person's, ones that are off by a day are not."""

from datetime import date, timedelta

from memories.models import Trust
from memories.text import quantities
from memories.text.support import SourceTexts
from tests.each import each

# A Friday.
SAID_ON = date(2026, 11, 20)

# What is said, and what a model makes of it; the last date in it is moved by a day for the control.
RIGHT = """
I travel today.|2026-11-20
I travel tonight.|2026-11-20
I travel tomorrow.|2026-11-21
I travel the day after tomorrow.|2026-11-22
I was ill the day before yesterday.|2026-11-18
I travel in 3 days.|2026-11-23
I travel in about three days.|2026-11-23
I travel three days from now.|2026-11-23
I leave in twenty-one days.|2026-12-11
I leave in a couple of days.|2026-11-22
I leave in 48 hours.|2026-11-22
I leave in 72 hours.|2026-11-23
I leave in a week.|2026-11-27
I leave in two weeks.|2026-12-04
I leave in a fortnight.|2026-12-04
I leave in a week and a half.|2026-11-30
The lease ends in six months.|2027-05-20
The lease ends in half a year.|2027-05-20
The lease ends in a year and a half.|2028-05-20
The lease ends in one and a half years.|2028-05-20
The rain began ten days ago.|2026-11-10
We met two weeks ago.|2026-11-06
We met a month ago.|2026-10-20
I have had this cough for the last five days.|2026-11-15
Only four days left until the exam.|2026-11-24
I travel on Monday.|2026-11-23
I saw her on Wednesday.|2026-11-18
We meet next Thursday.|2026-11-26
We met last Tuesday.|2026-11-17
We meet on Wednesday of next week.|2026-11-25
We meet a week from tomorrow.|2026-11-28
We meet two weeks from Monday.|2026-12-07
I travel this weekend.|2026-11-22
I am away next week.|2026-11-29
I pay at the end of the month.|2026-11-30
I pay at the end of November.|2026-11-30
I pay at the end of next month.|2026-12-31
I start at the beginning of next month.|2026-12-01
I pay on the 25th.|2026-11-25
I pay on the 3rd of next month.|2026-12-03
The year ends, my contract does at the end of the year.|2026-12-31
I travel on Christmas Eve.|2026-12-24
I travel on New Year's Day.|2027-01-01
I proposed on Valentine's Day.|2026-02-14
Last Halloween I moved.|2026-10-31
我今天出差。|2026年11月20日
我明天出差。|2026年11月21日
我后天出差。|2026年11月22日
我大后天出差。|2026年11月23日
我前天生病了。|2026年11月18日
我三天后出差。|2026年11月23日
我十天之后出差。|2026年11月30日
再过五天我就出差。|2026年11月25日
我48小时后出差。|2026年11月22日
我两周后出差。|2026年12月4日
我三个星期以后出差。|2026年12月11日
我半个月后出差。|2026年12月5日
我半年后毕业。|2027年5月20日
我一个半月前搬家了。|2026年10月6日
我两年前结婚了。|2024年11月20日
我十二天前搬家了。|2026年11月8日
我周一出差。|2026年11月23日
我下周三出差。|2026年11月25日
我下下周二出差。|2026年12月1日
我上周五去了医院。|2026年11月13日
我这周末出差。|2026年11月22日
我月底出差。|2026年11月30日
我十一月底出差。|2026年11月30日
我下个月初出差。|2026年12月1日
我25号出差。|2026年11月25日
我元旦出差。|2027年1月1日
我平安夜出差。|2026年12月24日
明日引っ越します。|2026年11月21日
明後日引っ越します。|2026年11月22日
三日後に引っ越します。|2026年11月23日
10日後に引っ越します。|2026年11月30日
二週間後に引っ越します。|2026年12月4日
3ヶ月後に引っ越します。|2027年2月20日
半年後に引っ越します。|2027年5月20日
五日前に引っ越しました。|2026年11月15日
来週の水曜日に引っ越します。|2026年11月25日
月曜日に引っ越します。|2026年11月23日
大晦日に引っ越します。|2026年12月31日
Ich reise morgen.|2026-11-21
Ich reise übermorgen.|22.11.2026
Ich war vorgestern krank.|18.11.2026
Ich reise in drei Tagen.|23.11.2026
Ich reise in zwei Wochen.|4. Dezember 2026
Ich reise in einem halben Jahr.|20. Mai 2027
Ich reise in anderthalb Wochen, also in zehn Tagen.|30.11.2026
Ich bin vor fünf Tagen umgezogen.|15.11.2026
Ich bin seit drei Wochen krank.|30.10.2026
Ich reise nächsten Mittwoch.|25.11.2026
Ich reise Montag in zwei Wochen.|07.12.2026
Ich war letzten Dienstag krank.|17.11.2026
Ich zahle Ende des Monats.|30.11.2026
Ich zahle am 25.|25.11.2026
Ich reise an Heiligabend.|24.12.2026
Ich reise an Silvester.|31.12.2026
Je pars demain.|le 21 novembre 2026
Je pars après-demain.|le 22 novembre 2026
J'étais malade avant-hier.|le 18 novembre 2026
Je pars dans trois jours.|le 23 novembre 2026
Je pars dans quinze jours.|le 4 décembre 2026
Je pars dans deux semaines.|le 4 décembre 2026
Je pars d'ici cinq jours.|25/11/2026
Je suis arrivé il y a six jours.|le 14 novembre 2026
Je pars mercredi prochain.|le 25 novembre 2026
Je suis parti lundi dernier.|le 16 novembre 2026
Je paie à la fin du mois.|le 30 novembre 2026
Je paie le 25.|le 25 novembre 2026
Je pars le jour de l'An.|le 1er janvier 2027
Salgo mañana.|el 21 de noviembre de 2026
Salgo pasado mañana.|el 22 de noviembre de 2026
Estuve enfermo anteayer.|el 18 de noviembre de 2026
Salgo en tres días.|el 23 de noviembre de 2026
Salgo dentro de dos semanas.|el 4 de diciembre de 2026
Llegué hace cuatro días.|el 16 de noviembre de 2026
Salgo el próximo miércoles.|el 25 de noviembre de 2026
Salgo el lunes que viene.|el 23 de noviembre de 2026
Salí el martes pasado.|el 17 de noviembre de 2026
Pago a fin de mes.|el 30 de noviembre de 2026
Salgo en Nochebuena.|el 24 de diciembre de 2026
Parto domani.|il 21 novembre 2026
Parto dopodomani.|il 22 novembre 2026
Parto tra tre giorni.|il 23 novembre 2026
Parto fra due settimane.|il 4 dicembre 2026
Sono arrivato cinque giorni fa.|il 15 novembre 2026
Parto mercoledì prossimo.|il 25 novembre 2026
Parto a Capodanno.|il 1 gennaio 2027
Viajo amanhã.|21 de novembro de 2026
Viajo depois de amanhã.|22 de novembro de 2026
Viajo em três dias.|23 de novembro de 2026
Viajo daqui a duas semanas.|4 de dezembro de 2026
Cheguei há cinco dias.|15 de novembro de 2026
Cheguei seis dias atrás.|14 de novembro de 2026
Viajo na próxima quarta-feira.|25 de novembro de 2026
Viajo dia 25.|25 de novembro de 2026
Я уезжаю послезавтра.|22 ноября 2026
Я уезжаю через три дня.|23 ноября 2026
Я приехал пять дней назад.|15 ноября 2026
"""
CASES = [tuple(line.split("|")) for line in RIGHT.strip().splitlines()]

# Where two days can be meant.
ALSO_RIGHT = {
    ("I leave in a week and a half.", date(2026, 12, 1)),
    ("I saw her on Wednesday.", date(2026, 11, 25)),
    ("I travel this weekend.", date(2026, 11, 21)),
    ("I am away next week.", date(2026, 11, 28)),
    ("我这周末出差。", date(2026, 11, 21)),
    ("我半个月后出差。", date(2026, 12, 4)),
    ("我一个半月前搬家了。", date(2026, 10, 5)),
    ("Je pars dans quinze jours.", date(2026, 12, 5)),
}

# A month or a year that follows, and one that does not.
LONGER = [
    ("My course ends in half a year.", "Course ends in May 2027", "Course ends in July 2027"),
    ("I started two months ago.", "Started in September 2026", "Started in August 2026"),
    ("I travel next month.", "Travels in December 2026", "Travels in January 2027"),
    ("I travel next year.", "Travels in 2027", "Travels in 2028"),
    ("I moved here last year.", "Moved here in 2025", "Moved here in 2023"),
    ("I moved here ten years ago.", "Moved here in 2016", "Moved here in 2013"),
    ("I quit last summer.", "Quit in summer 2026", "Quit in summer 2023"),
    ("我明年结婚。", "2027年结婚", "2029年结婚"),
    ("我两个月前入职。", "2026年9月入职", "2026年7月入职"),
    ("来年の春に結婚します。", "2027年の春に結婚する", "2029年の春に結婚する"),
    ("Ich heirate im nächsten Jahr.", "Heiratet 2027", "Heiratet 2029"),
    ("Je pars le mois prochain.", "Part en décembre 2026", "Part en février 2027"),
    ("Me mudé hace tres meses.", "Se mudó en agosto de 2026", "Se mudó en junio de 2026"),
]

# Days that nobody named.
INVENTED = [
    ("I travel next month.", "2026-12-17"),
    ("I travel next year.", "2027-03-08"),
    ("I travel next week.", "2026-11-25"),
    ("I run twice a week.", "2026-11-27"),
    ("I travel in a few weeks.", "2026-12-10"),
    ("I travel in the summer.", "2027-07-01"),
    ("I travel soon.", "2026-11-23"),
    ("I travel in 3 days.", "2026-11-17"),
    ("I came 3 days ago.", "2026-11-23"),
    ("我下个月出差。", "2026年12月17日"),
    ("我三天前出差了。", "2026年11月23日"),
    ("Je suis arrivé il y a six jours.", "le 26 novembre 2026"),
]


def is_own(said: str, statement: str) -> bool:
    return SourceTexts(users=[(said, SAID_ON)]).trust_of(statement) == Trust.USER


@each(("said", "written"), CASES)
def test_the_day_that_is_meant(said: str, written: str) -> None:
    assert is_own(said, f"It is {written}")


@each(("said", "written"), CASES)
@each("days", [1, -1, 7])
def test_another_day_waits(said: str, written: str, days: int) -> None:
    right = day_of(written)
    wrong = right + timedelta(days=days)
    if (said, wrong) in ALSO_RIGHT:
        assert is_own(said, f"It is {wrong.isoformat()}")
        return
    assert is_own(said, f"It is {right.isoformat()}")
    assert not is_own(said, f"It is {wrong.isoformat()}")


def day_of(written: str) -> date:
    (found,) = quantities.of(written).dates
    assert found.year
    assert found.day
    return date(found.year, found.month, found.day)


@each(("said", "right", "wrong"), LONGER)
def test_months_and_years(said: str, right: str, wrong: str) -> None:
    assert is_own(said, right)
    assert not is_own(said, wrong)


@each(("said", "invented"), INVENTED)
def test_nobody_named_this_day(said: str, invented: str) -> None:
    assert not is_own(said, f"It is {invented}")
