"""Tokens that begin with a prefix of their vendor's own.

The prefixes, lengths and alphabets are facts of the field's scanners (the rules of gitleaks, 2025; the plug-ins of
detect-secrets, 2025) and of the vendors' documentation. Prefixes with an alphabet in common are one pattern.
"""

from __future__ import annotations

import re
from typing import Final

# (alphabet, least characters after the prefix, prefixes); a prefix is a literal
_PREFIXES: Final = (
    (r"[0-9a-f]", 32, "dapi key- shippo_live_ shippo_test_ lsv2_pt_ lsv2_sk_ access-sandbox- access-production-"),
    (r"[0-9a-f_]", 50, "sgp_"),
    (r"[0-9a-f]", 32, "fc-"),
    (r"[0-9a-f]", 48, "sk_ key_"),
    (r"[a-z0-9]", 44, "csk- napi_ hcaik_"),
    (r"[A-Z0-9]", 40, "rpa_"),
    (r"[0-9a-f]", 40, "pul- sgp_ sbp_ xkeysib- sntryu_ sntrys_ rubygems_ phc_ phx_"),
    (r"[A-Za-z0-9]", 20, "tr_dev_ tr_prod_ LTAI AQVN nfp_ tgp_v1_ pcsk_ e2b_ sbv_ ddp_ PMAK- vercel_ CFPAT-"),
    (r"[A-Za-z0-9]", 30, "tvly- ico- EZAK EZTK EAAC EAAM EAAG AKCp pnu_ lin_api_ lin_oauth_"),
    (r"[A-Za-z0-9]", 30, "ntn_ p8e- dp.pt. dp.st. dp.ct."),
    (r"[A-Za-z0-9_-]", 24, "sb_secret_ bb_live_ wandb_v1_ CCIPAT_"),
    (r"[A-Za-z0-9]", 32, "AKID"),
    (r"[A-Za-z0-9_-]", 24, "figd_ dckr_pat_ dckr_oat_ tskey- nvapi-"),
    (r"[A-Za-z0-9_-]", 24, "glsa_ glc_ HRKU- rdme_ tfp_ NRAK- NRII- NRJS-"),
    (r"[A-Za-z0-9_=-]", 30, "ATATT3 ATCTT3 CLOJARS_ duffel_test_ duffel_live_ fio-u- fo1_"),
    (r"[A-Za-z0-9_=-]", 30, "pscale_tkn_ pscale_oauth_ pscale_pw_"),
    (r"[A-Za-z0-9_-]", 22, "dt0c01. dt0s01. sq0atp- sq0csp- FLWSECK_TEST- FLWSECK- amzn.mws."),
    (r"[0-9a-f]", 40, "squ_ sqp_ sqa_ rootly_ s-s4t2ud- s-s4t2af-"),
    (r"[0-9a-f_]", 40, "zpka_"),
    (r"[a-z0-9]", 43, "oy2"),
    (r"[A-Z0-9]", 26, "API-"),
    (r"[A-Za-z0-9]", 22, "rnd_ aio_ esecret_"),
    (r"[A-Za-z0-9]", 40, "cmVmdGtu"),
    (r"[A-Za-z0-9_-]", 40, "tk-us- tk-eu- EAAA sl."),
    (r"[A-Za-z0-9-]", 20, "sk_prod_ bkua_ voyage- key_live_ key_test_ whsk_"),
)  # fmt: skip


PREFIXES: Final = " ".join(names for _, _, names in _PREFIXES)
_ALTERNATIVES: Final = [
    f"(?:{'|'.join(map(re.escape, names.split()))}){alphabet}{{{least},}}" for alphabet, least, names in _PREFIXES
]
PREFIXED: Final = f"({'|'.join(_ALTERNATIVES)})"
SHORTEST: Final = 24  # characters of the shortest of these tokens that count as a run
