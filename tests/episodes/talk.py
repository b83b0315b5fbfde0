"""Fed turns from a few lines of talk, for what is pure."""

from memories.models import Role, Turn
from memories.text.transcript import TranscriptTurn
from tests.factories import NOW


def fed(*said: str) -> list[TranscriptTurn]:
    """Turns from 1 on, the user's and the assistant's by turns."""
    roles = [Role.USER, Role.ASSISTANT]
    return [turn(number, text, roles[(number - 1) % 2]) for number, text in enumerate(said, start=1)]


def turn(number: int, text: str, role: str = Role.USER) -> TranscriptTurn:
    return TranscriptTurn(turn=Turn(number=number, role=role, content=text, created_at=NOW), text=text)


LEAK = fed(
    "Our kitchen tap has been dripping since Monday, and the plumber wants 180 euros just to come.",
    "That is a lot. Is it a mixer tap with one lever? Then it is most likely the cartridge, which you can change "
    "yourself with an Allen key in half an hour. Turn the water off under the sink first.",
    "One lever, yes, from Borgholm. The number on it is BK-4420. Where would I get such a cartridge?",
    "Borgholm sells the cartridge of the BK-4420 as a spare part for about 25 euros; a hardware store orders it.",
    "Ordered it at the store in Hofgasse. I will put it in on Saturday and cancel the plumber.",
    "Good plan. Keep the old cartridge until the new one is in, so that you can compare the seals.",
)
TRIP = fed(
    "国庆想带爸妈去桂林玩五天，他们腿脚不好，不能爬山。",
    "可以坐船游漓江，从磨盘山码头到阳朔约四小时，全程坐着看风景。住宿建议选阳朔县城平路多的酒店，少搬行李。",
    "船票要提前多久买？我妈还吃素。",
    "国庆期间至少提前两周在官网买三星船的票，船上有素餐可以预订。阳朔西街附近有两家素菜馆。",
    "那就坐船，我今晚就把十月二号的票买了，酒店订阳朔三晚桂林一晚。",
    "好的，买票时记得填老人的身份证号码，六十岁以上有优惠。",
)
