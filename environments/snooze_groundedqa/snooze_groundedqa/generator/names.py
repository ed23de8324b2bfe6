"""The names of the embedded generator, authored for it; train and held-out items share none of them.

Every sentence names a body, a person or a place, so disjoint names make disjoint texts: no list is kept, nothing has
to be compared. What both sides share is the language: relations, months, numbers, kinds of bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Side = Literal["train", "eval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names one side may use."""

    marks: tuple[str, ...]
    """First word of a body: "Cobalt" in "the Cobalt Archive"."""
    kinds: tuple[str, ...]
    """What the body is, shared by both sides."""
    given: tuple[str, ...]
    family: tuple[str, ...]
    places: tuple[str, ...]


def _each(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(separator))


_KINDS = _each(
    "Observatory,Canal Trust,Weaving Company,Tram Society,Botanic Institute,Printing House,Salt Works,Archive,Glass Guild,"
    "Ferry Line,Clock Museum,Seed Bank,Map Office,Choir School,Rowing Club,Paper Mill,Lace Workshop,Weather Station,"
    "Bell Foundry,Rope Factory,Grain Exchange,Harbour Library,Herb Garden,Tile Works",
    ",",
)

NAMES: Mapping[Side, Names] = MappingProxyType(
    {
        "train": Names(
            marks=_each(
                "Northern Meridian Cobalt Juniper Sable Granite Willow Orion Lantern Saffron Tidal Amber Birch Copper Falcon "
                "Garnet Hazel Indigo Jasper Kestrel Laurel Maple Nettle Opal Pewter Quartz Raven Sorrel Thistle Umber"
            ),
            kinds=_KINDS,
            given=_each(
                "Mara Ilan Odile Tomas Priya Jonas Wen Alba Kofi Lena Rafael Sunniva Dario Hana Piet Noor Viktor Amaia "
                "Bram Celia"
            ),
            family=_each(
                "Okafor Lindqvist Marchetti Duval Sato Novak Abebe Petrov Castellano Reyes Hansen Iyer Kowal Brandt Silva "
                "Tanaka Moreau Quist Varga Yilmaz Adler Bianchi Cerny Dragan Eriksen Farkas Gruber Horvat"
            ),
            places=_each(
                "Harrowgate,Lindmoor,Castel Vey,Ostrava Bay,Tarn Hollow,Brightwater,Nyland,Corvane,Eskdale,Port Alder,"
                "Whitmere,Solvang Head,Ashby Cross,Bellmoor,Crane Ferry,Dunholt,Elmstead,Fernley",
                ",",
            ),
        ),
        "eval": Names(
            marks=_each(
                "Southern Azure Cedar Ivory Magpie Onyx Poplar Russet Silver Topaz Violet Walnut Yarrow Zephyr"
            ),
            kinds=_KINDS,
            given=_each("Anouk Boris Chiara Desta Emil Fatou Goran Ines Kaito Lucia Milan Nadia"),
            family=_each(
                "Jansen Keller Lopez Mbeki Nilsen Orlov Pereira Rossi Suzuki Toth Ueda Vogel Weiss Zhang"
            ),
            places=_each(
                "Gilmouth,Hartsea,Inverlane,Kelby Sands,Larkfield,Marlow Reach,Oakhaven,Penrose,Quarrydale,Rothwick",
                ",",
            ),
        ),
    }
)
MONTHS = _each("January February March April May June July August September October November December")
