"""Readings of a text that hides what it says to a model: folded, without invisible characters, decoded; pure.

A model reads "1gn0re", "i g n o r e", Cyrillic letters in Latin words, entities, percent signs and base64 like plain
text. Each reading is of bounded length, and made in one pass.
"""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

from memories.invisible import strip_invisible

# Of a longer text both ends are read.
LONGEST = 40_000
_MOST_CODES = 8
_LONGEST_CODE = 4_000

_MARKS = re.compile("[\u0300-\u036f]+")
# Letters that look like Latin ones. They are replaced in words that have Latin letters, too.
_LOOKALIKES = str.maketrans(
    "авекмнорстухіјѕԁӏһԛԝαβεηικνορτυχγѵյօսոցɑɡıɩ",
    "abekmhopctyxijsdlhqwabenikvoptuxyvjounqagii",
)
_MIXED = re.compile(r"(?=\w{0,40}[a-z])(?=\w{0,40}[а-яіјѕԁӏһԛԝα-ωѵյօսոցɑɡıɩ])\w{2,40}")
_STYLED = str.maketrans(
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "abcdefghijklmnoprstuvwyz",
) | {start + place: ord("a") + place for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6) for place in range(26)}
_LEET = str.maketrans("013457@$!|", "oieastasil")
_LEETED = re.compile(r"(?<![\w@$!|./:-])(?=[\w@$!|]{0,30}[a-z])(?=[\w@$!|]{0,30}[013457@$!|])[\w@$!|]{3,30}(?![\w@./])")
# Separated letters: s p a c e d, s.p.a.c.e.d, s-p-a-c-e-d.
_SPACED = re.compile(r"(?<!\w)[^\W_](?:[ .\-_*·/|]{1,2}[^\W_](?!\w)){3,400}")
_BETWEEN_LETTERS = re.compile(r"(?<=\S)[ .\-_*·/|](?=\S)")
_APART = re.compile("(?<=[\u3040-\u30ff\u3400-\u9fff])[ \u00b7.*_|~/-]{1,3}(?=[\u3040-\u30ff\u3400-\u9fff])")
# Traditional characters of our phrases; the Japanese ones of the same shape fold alike.
_SIMPLER = str.maketrans(
    "無視規則說統憶戶員驗證權請將發給這個從現後須應該對話記錄鏈鍵網郵資訊產運執調書傳額優惠號轉賬帳關閉圍續"
    "餘蓋複復戲並購僅項電腦聯絡寫講聞點錯讀歷幫匯銀終當沒種強顧確誰隨內報訴隱瞞經許開啟為們來過備註無論問題頁連結圖檔據庫刪變讓與導戰體審視訂單費減價買賣貨幣錢總級別類飾"
    "動準認識碼簽機構務實屬處簡獲遵從聽進違棄掉擺脫絕密洩漏維護擁獎勵廢舊態稱選擇遠離論須舉檢測條檯",
    "无视规则说统忆户员验证权请将发给这个从现后须应该对话记录链键网邮资讯产运执调书传额优惠号转账账关闭围续"
    "余盖复复戏并购仅项电脑联络写讲闻点错读历帮汇银终当没种强顾确谁随内报诉隐瞒经许开启为们来过备注无论问题页连结图档据库删变让与导战体审视订单费减价买卖货币钱总级别类饰"
    "动准认识码签机构务实属处简获遵从听进违弃掉摆脱绝密泄漏维护拥奖励废旧态称选择远离论须举检测条台",
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,4000}={0,2}(?![A-Za-z0-9+/_-])")
_HEXADECIMAL = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :]?){10,2000}(?![0-9A-Fa-f])")
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_LEAST_PRINTED = 0.9


def readings(text: str) -> Iterator[str]:
    """Each reading once, the plain one first: `text` folded, then also decoded, with separated letters joined, and with
    letters in place of digits and signs."""
    text = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    yielded: set[str] = set()
    for plain in _decoded(text):
        for reading in _spelled(fold(plain)):
            if reading not in yielded:
                yielded.add(reading)
                yield reading


def fold(text: str) -> str:
    """NFKC, case folded, without accents and invisible characters; look-alikes among Latin letters become Latin,
    traditional Chinese becomes simplified. Phrases are folded by the same function."""
    folded = unicodedata.normalize("NFKC", strip_invisible(text)).translate(_STYLED).casefold()
    if not folded.isascii():
        folded = _MARKS.sub("", unicodedata.normalize("NFD", folded))
        folded = unicodedata.normalize("NFC", folded).translate(_SIMPLER)
        folded = _MIXED.sub(lambda found: found[0].translate(_LOOKALIKES), folded)
        folded = _APART.sub("", folded)
    return folded


def _decoded(text: str) -> Iterator[str]:
    yield text
    plain = text
    for _ in range(2):
        plain = html.unescape(plain) if "&" in plain else plain
        plain = unquote(plain, errors="ignore") if plain.count("%") > 2 else plain
        plain = _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), plain) if "\\" in plain else plain
    if plain != text:
        yield plain
    for found in islice(_BASE64.finditer(plain), _MOST_CODES):
        yield from _printed(_of_base64(found[0][:_LONGEST_CODE]))
    for found in islice(_HEXADECIMAL.finditer(plain), _MOST_CODES):
        yield from _printed(bytes.fromhex(re.sub("[ :]", "", found[0])[:_LONGEST_CODE]))


def _of_base64(code: str) -> bytes:
    whole = code.rstrip("=").replace("-", "+").replace("_", "/")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4))
    except binascii.Error:
        return b""


def _printed(code: bytes) -> Iterator[str]:
    decoded = code.decode("utf-8", errors="ignore")
    if len(decoded) >= _LEAST_PRINTED * len(code) / 3 and decoded and decoded.isprintable():
        yield decoded


def _spelled(folded: str) -> Iterator[str]:
    yield folded
    # Two spaces separate words.
    joined = _SPACED.sub(lambda found: _BETWEEN_LETTERS.sub("", found[0]), folded)
    yield joined
    yield _LEETED.sub(lambda found: found[0].translate(_LEET), joined)
