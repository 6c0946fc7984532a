"""The time zone abbreviations of PostgreSQL's default set, lower case.

A fixed abbreviation is an offset; a dynamic one is whatever offset its zone used under that abbreviation.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DYNAMIC", "FIXED"]

#: seconds east of UTC
FIXED: Final[dict[str, int]] = {
    name: seconds
    for seconds, names in {
        -36000: "hst taht",
        -34200: "mart",
        -32400: "akst gamt",
        -28800: "akdt pst",
        -25200: "mst pdt",
        -21600: "cst galt mdt",
        -18000: "act cdt cot est pet",
        -14400: "amt ast bot edt",
        -12600: "nft nst",
        -10800: "adt bra brt clst gft pmst pyst uyt wgt",
        -9000: "ndt",
        -7200: "brst fnt pmdt uyst wgst",
        -3600: "azot egt fnst",
        0: "azost egst gmt uct ut utc wet z zulu",
        3600: "bst cet met mez wat wetdst",
        7200: "bdst cest cetdst eet ist mest mesz metdst sast",
        10800: "eat eest eetdst fet idt",
        12600: "irt",
        14400: "msd mut ret sct",
        16200: "aft",
        18000: "must mvt pkt tft tjt uzt",
        20700: "npt",
        21600: "almt bdt btt kgst pkst uzst xjt yekst",
        23400: "mmt",
        25200: "almst cxt ict wast",
        28800: "awst bnt bort cct hkt myt pht wadt",
        31500: "acwst",
        32400: "awsst jayt jst kst pwt ulast wdt",
        34200: "acst cast",
        36000: "aest chut ddut kdt ligt mpt pgt trut yapt",
        37800: "acdt acsst cadt lhst sadt",
        39600: "aedt aesst pont vut",
        43200: "fjt gilt mht nzst nzt tvt wakt wft",
        45900: "chast",
        46800: "fjst nzdt tot",
        49500: "chadt",
    }.items()
    for name in names.split()
}

#: zone names
DYNAMIC: Final[dict[str, str]] = {
    name: zone
    for zone, names in {
        "America/Argentina/Buenos_Aires": "arst art",
        "America/Asuncion": "pyt",
        "America/Caracas": "vet",
        "America/Guyana": "gyt",
        "America/Santiago": "clt",
        "Antarctica/Davis": "davt",
        "Antarctica/Mawson": "mawt",
        "Asia/Anadyr": "anast anat",
        "Asia/Ashgabat": "tmt",
        "Asia/Baku": "azst azt",
        "Asia/Bishkek": "kgt",
        "Asia/Colombo": "lkt",
        "Asia/Irkutsk": "irkst irkt",
        "Asia/Kamchatka": "petst pett",
        "Asia/Krasnoyarsk": "krast krat",
        "Asia/Magadan": "magst magt",
        "Asia/Novosibirsk": "novst novt",
        "Asia/Omsk": "omsst omst",
        "Asia/Singapore": "sgt",
        "Asia/Tbilisi": "gest get",
        "Asia/Ulaanbaatar": "ulat",
        "Asia/Vladivostok": "vlast vlat",
        "Asia/Yakutsk": "yakst yakt",
        "Asia/Yekaterinburg": "yekt",
        "Asia/Yerevan": "amst",
        "Atlantic/Stanley": "fkst fkt",
        "Australia/Lord_Howe": "lhdt",
        "Europe/Moscow": "msk",
        "Europe/Volgograd": "volt",
        "Indian/Chagos": "iot",
        "Pacific/Easter": "easst east",
        "Pacific/Fakaofo": "tkt",
        "Pacific/Kiritimati": "lint",
        "Pacific/Kosrae": "kost",
        "Pacific/Niue": "nut",
        "Pacific/Rarotonga": "ckt",
    }.items()
    for name in names.split()
}
