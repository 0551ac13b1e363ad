"""What the papers report of their methods, to stand beside what is counted here.

Times are of their graphs and cards, and can be compared only with each other.
"""

from __future__ import annotations

# Milliseconds on Friendster, one source: Table 1 of the v3.3 report.
EVOLUTION_MS = {"v1": 21_245, "v2": 18_506, "v3.1": 12_009, "v3.2": 1_200, "v3.3": 831}
# Microseconds on roadNet-CA and soc-orkut: Table 1 of the study on an RTX 4070.
_FIVE_US = {
    "simple": (55_087, 27_927),
    "queue": (198_782, 1_394_045),
    "scan": (77_494, 87_220),
    "gunrock": (1_276_076, 194_507),
    "gswitch": (71_988, 9_225),
}
# Words that a search moves: Merrill's §5.
_MERRILL_WORDS = {
    "expand-contract": "5n + 2m",
    "contract-expand": "3n + 4m",
    "two-phase": "5n + 4m",
    "hybrid": "5n + 4m",
}
# Share of xbfs's gain that each way to make the queue has: its Fig. 13.
XBFS_SHARES = {"scan-free": 18.0, "single-scan": 15.7, "no-queue": 11.4, "double-scan": 54.9}

FIGURES = {
    **{name: f"{ms:,} ms, Friendster" for name, ms in EVOLUTION_MS.items()},
    **{
        name: f"{road / 1000:,.0f} ms roadNet-CA, {orkut / 1000:,.0f} ms orkut"
        for name, (road, orkut) in _FIVE_US.items()
    },
    **{name: f"moves {words} words" for name, words in _MERRILL_WORDS.items()},
    **{name: f"{share:g}% of the gain" for name, share in XBFS_SHARES.items()},
    "async": "edge checks -23.2%, from -51 to -1",
    "xbfs": "3.5x Enterprise",
}


def figure_of(method: str) -> str:
    """Return the figure that a method's paper has; options have none of their own."""
    return FIGURES.get(method, "")
