"""The classics of the literature as designs, by name.

Sources: SGC (Wu et al. 2019), S2GC (Zhu and Koniusz 2021), SIGN (Rossi et al. 2020), GBP (Chen et al. 2020), APPNP
(Gasteiger et al. 2019), PaSca-V1..V3 (Zhang et al. 2022). S2GC's mean over hops 0..K is its α = 1/(K+1); its authors
use K = 16. APPNP is decoupled here: it is trained before it is propagated. GBP's fixed decay is no point of the
paper's space; the nearest one is `weighted`.

Later models, points of the extended space alone: C&S is an MLP with Correct & Smooth (Huang et al. 2021), LINKX adds
adjacency rows to an MLP's first layer (Lim et al. 2021), GAMLP joins hops with a jumping-knowledge gate and reuses
labels (Zhang et al. 2022), LD2 puts low-pass and high-pass hops side by side (Liao et al. 2023). LD2-BN is the same
with what lifts plain models: no self-loops, so that a node is kept apart from its neighbours (Zhu et al. 2020, H2GCN),
reuse of labels, batch normalisation, residuals, and light dropout without weight decay (Luo et al. 2024). GRAND asks
for equal answers under dropout (Feng et al. 2020, with width and learning rate of its Cora setting), GRAND-BN is the
same with batch normalisation and the steps, width and dropout of its PubMed setting. Each is the nearest decoupled
design, not the published network.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from search_space.architecture import Architecture
from search_space.errors import DesignError

CLASSICS: Mapping[str, Architecture] = MappingProxyType(
    {
        "MLP": Architecture.parse("-/-/mlp-2/-"),
        "SGC": Architecture.parse("augmented^2/none/mlp-1/-"),
        "S2GC": Architecture.parse("augmented^10/mean/mlp-1/-"),
        "SIGN": Architecture.parse("augmented^3/concat/mlp-2/-"),
        "GBP": Architecture.parse("augmented^4/decay0.1/mlp-2/-"),
        "APPNP": Architecture.parse("-/-/mlp-2/ppr0.1^10"),
        "PaSca-V1": Architecture.parse("ppr0.1^6/weighted/mlp-3/-"),
        "PaSca-V2": Architecture.parse("augmented^6/adaptive/mlp-3/-"),
        "PaSca-V3": Architecture.parse("augmented^6/adaptive/mlp-3/ppr0.3^4"),
    }
)

LATER: Mapping[str, Architecture] = MappingProxyType(
    {
        "C&S": Architecture.parse("-/-/mlp-2/cs0.8^10"),
        "LINKX": Architecture.parse("-/-/mlp-2/-@adjacency=rows"),
        "GAMLP": Architecture.parse("augmented^5/jk/mlp-3/-@labels=2"),
        "LD2": Architecture.parse("twochannel^2/concat/mlp-2/-"),
        "LD2-BN": Architecture.parse(
            "twochannel_loops0^3/concat/mlp-3/-@input_dropout=0,dropout=0.2,lr=0.01,wd=0,norm=batch,residual=on,labels=2"
        ),
        "GRAND": Architecture.parse("augmented^8/mean/mlp-2/-@hidden=32,lr=0.01,consistency=1"),
        "GRAND-BN": Architecture.parse(
            "augmented^5/mean/mlp-2/-@hidden=32,dropout=0.8,lr=0.1,norm=batch,consistency=1"
        ),
    }
)


def find_design(text: str) -> Architecture:
    """Return the design meant by a classic's name (in any case) or by a text form.

    Raises:
        DesignError: it is neither; the message lists the classics and shows the text form.
    """
    by_name = {name.lower(): design for name, design in {**CLASSICS, **LATER}.items()}
    if text.strip().lower() in by_name:
        return by_name[text.strip().lower()]
    if "/" not in text:
        raise DesignError(
            f"unknown design {text!r}; give a classic ({', '.join((*CLASSICS, *LATER))}) "
            "or a text form such as augmented^6/adaptive/mlp-3/ppr0.3^4"
        )
    return Architecture.parse(text)
