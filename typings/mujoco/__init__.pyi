"""The part of MuJoCo that modlife calls; the package itself comes without types."""

import numpy as np

__version__: str

class Named:
    id: int

class MjModel:
    _address: int
    nv: int
    ngeom: int
    actuator_ctrlrange: np.ndarray
    body_mass: np.ndarray
    body_ipos: np.ndarray
    body_iquat: np.ndarray
    body_inertia: np.ndarray
    geom_bodyid: np.ndarray
    M_rowadr: np.ndarray
    M_rownnz: np.ndarray
    M_colind: np.ndarray
    @staticmethod
    def from_xml_string(xml: str, assets: dict[str, bytes] | None = ...) -> MjModel: ...
    def site(self, name: str) -> Named: ...
    def body(self, name: str) -> Named: ...
    def geom(self, name: str) -> Named: ...
    def camera(self, name: str) -> Named: ...

class Contacts:
    geom: np.ndarray

class MjData:
    _address: int
    qpos: np.ndarray
    qvel: np.ndarray
    qacc_warmstart: np.ndarray
    qfrc_bias: np.ndarray
    ctrl: np.ndarray
    M: np.ndarray
    site_xpos: np.ndarray
    xpos: np.ndarray
    xquat: np.ndarray
    xmat: np.ndarray
    contact: Contacts
    def __init__(self, model: MjModel) -> None: ...

class MjvCamera:
    fixedcamid: int
    type: int

class MjvOption: ...

class MjvScene:
    def __init__(self, model: MjModel, maxgeom: int) -> None: ...

class MjrContext:
    def __init__(self, model: MjModel, fontscale: int) -> None: ...

class MjrRect:
    def __init__(self, left: int, bottom: int, width: int, height: int) -> None: ...

class GLContext:
    def __init__(self, max_width: int, max_height: int) -> None: ...
    def make_current(self) -> None: ...
    def free(self) -> None: ...

class mjtFontScale:
    mjFONTSCALE_100: int

class mjtFramebuffer:
    mjFB_OFFSCREEN: int

class mjtCatBit:
    mjCAT_ALL: int

class mjtCamera:
    mjCAMERA_FIXED: int

def mjr_setBuffer(framebuffer: int, con: MjrContext) -> None: ...
def mjr_render(viewport: MjrRect, scn: MjvScene, con: MjrContext) -> None: ...
def mjr_readPixels(rgb: np.ndarray, depth: np.ndarray | None, viewport: MjrRect, con: MjrContext) -> None: ...
def mjv_updateScene(
    m: MjModel,
    d: MjData,
    opt: MjvOption,
    pert: object,
    cam: MjvCamera,
    catmask: int,
    scn: MjvScene,
) -> None: ...
def mj_step1(model: MjModel, data: MjData) -> None: ...
def mj_step2(model: MjModel, data: MjData) -> None: ...
def mj_kinematics(model: MjModel, data: MjData) -> None: ...
def mj_camlight(model: MjModel, data: MjData) -> None: ...
def mj_comPos(model: MjModel, data: MjData) -> None: ...
def mj_fwdPosition(model: MjModel, data: MjData) -> None: ...
def mj_jacSite(m: MjModel, d: MjData, jacp: np.ndarray | None, jacr: np.ndarray | None, site: int) -> None: ...
