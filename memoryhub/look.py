"""How the admin looks: Unfold's settings, as plain data."""

from typing import Any

from django.templatetags.static import static


def _asset(name: str) -> Any:
    return lambda _: static(f"memories/{name}")


# For answers that are no pages: nothing of them is run or framed. Directives as in django-csp.
POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'none'"],
        "base-uri": ["'none'"],
    },
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Memory Hub",
    "SITE_HEADER": "Memory Hub",
    "SITE_URL": None,
    "SITE_ICON": {"light": _asset("logo.svg"), "dark": _asset("logo-dark.svg")},
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _asset("logo.svg")}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "STYLES": [_asset("hub.css")],
    # The palette's history would keep what staff searched for in their browsers.
    "COMMAND": {"search_models": False, "show_history": False},
    "ACCOUNT": {"navigation": "memories.admin.sidebar.of_the_operator"},
    "SIDEBAR": {"show_search": False, "navigation": "memories.admin.sidebar.navigation"},
    "COLORS": {
        # Teal; 600 carries white text at 4.9:1, 500 stands on the dark ground at 6:1.
        "primary": {
            "50": "oklch(98.2% .012 188)",
            "100": "oklch(95% .03 188)",
            "200": "oklch(90% .06 188)",
            "300": "oklch(84% .09 188)",
            "400": "oklch(76% .115 188)",
            "500": "oklch(68% .115 188)",
            "600": "oklch(54.5% .097 188)",
            "700": "oklch(48% .085 188)",
            "800": "oklch(41% .072 188)",
            "900": "oklch(35% .06 188)",
            "950": "oklch(27% .046 190)",
        },
    },
}
