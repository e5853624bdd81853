"""The registration of a user equipment in a 5G core, as calls over its service based interfaces.

3GPP TS 23.502 clause 4.2.2.2.2 (general registration), of an equipment that identifies itself by SUCI to an AMF that
has not seen it before: the steps that network functions carry out over HTTP (TS 29.500), without the optional transfer
from an old AMF and the check of the equipment's identity. The radio side reaches the AMF over NGAP, which is not
HTTP: here the client's request stands for it. Message sizes are those of the JSON that the OpenAPI files of the named
specifications describe, with the attributes a registration fills in, to about 10 %. A service distinguishes requests by
their path without the query, so every answer of the NRF has one size.
"""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.design.graph import Body, Call, Graph, Route

CLIENT = "UE"
ENTRY_PATH = "/registration"
FUNCTIONS = ("AMF", "NRF", "AUSF", "UDM", "PCF", "SMF")
_SUPI = "imsi-001010000000001"


@dataclass(frozen=True)
class Step:
    """A call of the procedure: its step in the figure of clause 4.2.2.2.2, and octets of request and answer."""

    step: str
    caller: str
    callee: str
    method: str
    path: str
    request_bytes: int
    answer_bytes: int
    operation: str


STEPS = (
    Step("8", "AMF", "NRF", "GET", "/nnrf-disc/v1/nf-instances?target-nf-type=AUSF&requester-nf-type=AMF", 0, 1500,
         "Nnrf_NFDiscovery_Request (TS 29.510)"),
    Step("9", "AMF", "AUSF", "POST", "/nausf-auth/v1/ue-authentications", 150, 420,
         "Nausf_UEAuthentication_Authenticate (TS 29.509)"),
    Step("9", "AUSF", "NRF", "GET", "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AUSF", 0, 1500,
         "Nnrf_NFDiscovery_Request (TS 29.510)"),
    Step("9", "AUSF", "UDM", "POST", f"/nudm-ueau/v1/{_SUPI}/security-information/generate-auth-data", 120, 340,
         "Nudm_UEAuthentication_Get (TS 29.503)"),
    Step("9", "AMF", "AUSF", "PUT", "/nausf-auth/v1/ue-authentications/1/5g-aka-confirmation", 60, 160,
         "Nausf_UEAuthentication_Authenticate, confirmation (TS 29.509)"),
    Step("9", "AUSF", "UDM", "POST", f"/nudm-ueau/v1/{_SUPI}/auth-events", 190, 200,
         "Nudm_UEAuthentication_ResultConfirmation (TS 29.503)"),
    Step("13", "AMF", "NRF", "GET", "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF", 0, 1500,
         "Nnrf_NFDiscovery_Request (TS 29.510)"),
    Step("14a", "AMF", "UDM", "PUT", f"/nudm-uecm/v1/{_SUPI}/registrations/amf-3gpp-access", 480, 480,
         "Nudm_UECM_Registration (TS 29.503)"),
    Step("14b", "AMF", "UDM", "GET", f"/nudm-sdm/v2/{_SUPI}/am-data", 0, 900, "Nudm_SDM_Get (TS 29.503)"),
    Step("14b", "AMF", "UDM", "GET", f"/nudm-sdm/v2/{_SUPI}/smf-select-data", 0, 380, "Nudm_SDM_Get (TS 29.503)"),
    Step("14b", "AMF", "UDM", "GET", f"/nudm-sdm/v2/{_SUPI}/ue-context-in-smf-data", 0, 240,
         "Nudm_SDM_Get (TS 29.503)"),
    Step("14c", "AMF", "UDM", "POST", f"/nudm-sdm/v2/{_SUPI}/sdm-subscriptions", 330, 360,
         "Nudm_SDM_Subscribe (TS 29.503)"),
    Step("15", "AMF", "NRF", "GET", "/nnrf-disc/v1/nf-instances?target-nf-type=PCF&requester-nf-type=AMF", 0, 1500,
         "Nnrf_NFDiscovery_Request (TS 29.510)"),
    Step("16", "AMF", "PCF", "POST", "/npcf-am-policy-control/v1/policies", 560, 430,
         "Npcf_AMPolicyControl_Create (TS 29.507)"),
    Step("17", "AMF", "SMF", "POST", "/nsmf-pdusession/v1/sm-contexts/1/modify", 420, 250,
         "Nsmf_PDUSession_UpdateSMContext (TS 29.502)"),
    Step("21b", "AMF", "PCF", "POST", "/npcf-ue-policy-control/v1/policies", 510, 520,
         "Npcf_UEPolicyControl_Create (TS 29.525)"),
)  # fmt: skip
# What a function calls while it answers, by place in the table: the AUSF asks the UDM before it can challenge the
# equipment, and tells it of the outcome.
_WITHIN = {1: (2, 3), 4: (5,)}


def registration() -> Graph:
    """The procedure as a graph: the AMF makes its calls one after the other, the AUSF its own within them."""
    nested = {place for places in _WITHIN.values() for place in places}

    def call(step: Step) -> Call:
        body: Body = step.request_bytes or "none"
        return Call(step.callee, step.method, step.path, body)

    routes = [Route("AMF", ENTRY_PATH, tuple(call(s) for i, s in enumerate(STEPS) if i not in nested), 300)]
    for place, step in enumerate(STEPS):
        inner = tuple(call(STEPS[other]) for other in _WITHIN.get(place, ()))
        routes.append(Route(step.callee, step.path, inner, step.answer_bytes))
    return Graph((CLIENT, *FUNCTIONS), Call("AMF", "POST", ENTRY_PATH, "forward"), tuple(routes))
