"""What axe-core finds wrong with a page for people who use a keyboard, a screen reader or a magnifier."""

from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.sync_api import Page

GRAVE = ("serious", "critical")
# Each rule says how grave its violations are: those that are not asked about would take half of the time. Of WCAG 2.2
# axe leaves out the size of what is tapped unless it is asked for.
RUN = """
    async ([context, grave]) => {
        const isAsked = rule => grave.includes(rule.impact) && (rule.enabled || rule.id === "target-size")
            && !rule.tags.includes("experimental") && !rule.tags.includes("deprecated");
        const runOnly = {type: "rule", values: axe._audit.rules.filter(isAsked).map(rule => rule.id)};
        return (await axe.run(context, {resultTypes: ["violations"], runOnly})).violations;
    }
"""
# Parts of pages that others made, each with its fault.
NOT_OURS = (
    # Django's own two lists of permissions, whose labels it names twice.
    ".selector",
)


# A colour on its way from one to the other has the contrast of neither.
SETTLED = """
    () => Promise.all(document.getAnimations()
        .filter(one => one.effect.getComputedTiming().iterations !== Infinity)
        .map(one => one.finished.catch(() => null))).then(() => null)
"""
# Of a list's rows that are built alike axe would say the same of each, and takes as long for each.
ALIKE = """
    () => {
        const seen = new Set();
        for (const row of document.querySelectorAll("#result_list > tbody")) {
            const shape = [row, ...row.querySelectorAll("*")].map(element => [
                element.tagName, element.getAttribute("class"), element.getAttributeNames(), !element.textContent.trim()
            ].join(" ")).join();
            row.toggleAttribute("data-alike", seen.has(shape));
            seen.add(shape);
        }
    }
"""


def faults(page: Page, *, within: str = "", without: str = "") -> list[str]:
    """The page's serious and critical violations, a line each: rule, where, what. Empty: none.

    `within`: a CSS selector of the part to look at; the whole page by default. `without`: of a part to pass over.
    """
    passed_over = [*NOT_OURS, "[data-alike]", *([without] if without else [])]
    context = {"include": [within] if within else ["html"], "exclude": passed_over}
    page.evaluate(SETTLED)
    page.evaluate(ALIKE)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return [
        f"{violation['id']}: {' '.join(map(str, node['target']))}: {violation['help']}"
        for violation in page.evaluate(RUN, [context, GRAVE])
        for node in violation["nodes"]
    ]
