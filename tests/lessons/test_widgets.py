"""What every widget shares: both ends, one figure, rates that can be small, errors in view (D-26, D-27, D-29)."""

from __future__ import annotations

import base64
import io
import warnings

import numpy as np
import pytest

pytest.importorskip("ipywidgets")
from matplotlib import pyplot as plt
from PIL import Image

from nnlab.errors import UnknownName
from nnlab.lessons import widgets

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 1))
X_CRASH, Y_CRASH = RNG.normal(size=(70, 3)), RNG.normal(size=(70, 1))
PICTURE = np.add.outer(np.arange(24), np.arange(24)) / 46
SECONDS = np.array([[1.0, 2.0], [3.0, 9.0]])
MAKE = {
    "Products": widgets.Products,
    "Coverage": widgets.Coverage,
    "LearningRate": lambda: widgets.LearningRate(X, Y, steps=30),
    "Threshold": lambda: widgets.Threshold(np.linspace(0, 1, 40), (Y > 0).astype(float)),
    "Xor": lambda: widgets.Xor(steps=20),
    "PortCost": widgets.PortCost,
    "Lanes": widgets.Lanes,
    "Crossover": lambda: widgets.Crossover((4, 64), (8, 32), 1e-3 * SECONDS, 2e-3 * SECONDS[::-1], name="live"),
    "Prices": lambda: widgets.Prices(X, 14 * Y, X[:9], 14 * Y[:9], steps=20),
    "TimeLapse": lambda: widgets.TimeLapse(RNG.random((5, 7)), {step: RNG.random((5, 7)) for step in (0, 5, 9)}),
    "Pools": widgets.Pools,
    "Crash": lambda: widgets.Crash(X_CRASH, Y_CRASH, unit=100.0),
    "Codec": lambda: widgets.Codec({"a": PICTURE, "b": 1 - PICTURE}),
    "Signals": widgets.Signals,
    "Sines": widgets.Sines,
    "Dispatch": widgets.Dispatch,
    "Climb": widgets.Climb,
}
WRONG = {
    "Products": [{"rows": 0}, {"inner": 3}, {"columns": -1}],
    "Coverage": [{"blocks": 9}, {"threads": 0}, {"guard": "maybe"}],
    "LearningRate": [{"rate": -1.0}, {"rate": 0.0}, {"rate": float("nan")}, {"rate": 7.0}],
    "Threshold": [{"threshold": -0.1}, {"threshold": 1.5}, {"threshold": float("nan")}],
    "Xor": [{"rate": -1.0}, {"rate": 99.0}, {"width": 5}, {"start": 9}, {"activation": "tanhh"}],
    "Crossover": [{"batch": 5}, {"width": 9}],
    "Lanes": [{"rows": 7}, {"sums": "sum over columns"}, {"read": "never"}],
    "PortCost": [{"rows": 7}, {"sigmoid": "with mask"}, {"mails": "twice"}, {"loss": "printed"}],
    "Pools": [{"pool": "asink"}, {"size": "17 B"}, {"wait": "sometimes"}],
    "Prices": [{"rate": -1.0}, {"rate": 9.0}, {"depth": 4}, {"width": 7}],
    "TimeLapse": [{"step": 3}],
    "Crash": [{"crash": 7}, {"forgotten": "the name"}],
    "Codec": [{"picture": "c"}, {"method": "cubic"}, {"size": 15}, {"bits": 9}],
    "Signals": [{"gain": -1.0}, {"gain": 0.0}, {"coordinates": "0 to 2"}],
    "Sines": [{"omega_0": 7}, {"width": 100}],
    "Dispatch": [{"rows": 3}, {"width": 0}, {"layers": 5}],
    "Climb": [{"width": 7}, {"side": 0}, {"card": "H100"}],
}


@pytest.fixture(scope="module")
def built():
    """One widget of each kind, with its first values."""
    return {name: make() for name, make in MAKE.items()}


@pytest.fixture(params=MAKE)
def ui(request, built):
    first = {name: control.value for name, control in built[request.param].controls.items()}
    yield built[request.param]
    for name, value in first.items():
        built[request.param].controls[name].value = value


def ends(control):
    """The first and the last value of a control."""
    if hasattr(control, "options"):
        return control.options[0], control.options[-1]
    if hasattr(control, "base"):
        return control.base**control.min, control.base**control.max
    return control.min, control.max


def test_every_widget_is_tested_here():
    bases = {"Explorer", "plain"}
    assert set(MAKE) == set(WRONG) == set(widgets.__all__) - bases


def test_every_control_drives_numbers_and_picture_at_both_ends(ui):
    for control in ui.controls.values():
        first, last = ends(control)
        control.value = first
        before = ui.numbers.value, ui.picture.value
        control.value = last
        assert ui.message.value == ""
        assert ui.numbers.value != before[0]
        assert ui.picture.value != before[1]


def test_moves_leave_one_figure(ui):
    """D-26: after 25 values no figure is left open, no artist is added, nothing warns."""
    figure, artists, opened = ui.figure, len(ui.figure.findobj()), plt.get_fignums()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for share in np.linspace(0, 1, 25):
            for control in ui.controls.values():
                if not hasattr(control, "options"):
                    low, high = ends(control)
                    control.value = low + share * (high - low)
    assert plt.get_fignums() == opened
    assert ui.figure is figure
    assert abs(len(ui.figure.findobj()) - artists) <= 4  # ticks may come and go


def test_sliders_act_on_release(ui):
    """D-27."""
    for control in ui.controls.values():
        assert getattr(control, "continuous_update", False) is False


@pytest.mark.parametrize("name", ["LearningRate", "Xor", "Prices"])
def test_rates_are_logarithmic_and_small_ones_are_shown(name, built):
    """D-27."""
    rate = built[name].rate
    assert type(rate).__name__ == "FloatLogSlider"
    assert rate.base**rate.min <= 1e-4 < 1 <= rate.base**rate.max
    rate.value = 1e-4
    assert format(rate.value, rate.readout_format) == "0.0001"


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, all_of in WRONG.items() for wrong in all_of])
def test_an_error_is_shown_the_picture_stays_and_the_next_value_works(name, wrong, built):
    """D-29."""
    ui = built[name]
    picture, numbers = ui.picture.value, ui.numbers.value
    ui.show(**wrong)
    assert "⚠" in ui.message.value
    assert all((value if isinstance(value, str) else f"{value:g}") in ui.message.value for value in wrong.values())
    assert (ui.picture.value, ui.numbers.value) == (picture, numbers)
    ui.show()
    assert ui.message.value == ""


def test_a_fault_of_the_widget_itself_is_not_hidden(built):
    with pytest.raises(ValueError, match="one of each a mail"):
        widgets.Threshold(np.zeros(3), np.zeros(4))
    with pytest.raises(UnknownName):
        built["Xor"].update(rate=1.0, width=2, start=0, activation="none")


def test_a_reader_without_a_kernel_sees_a_picture_and_words(ui):
    bundle, metadata = ui._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == ui.model_id
    assert bundle["text/plain"].startswith(f"{type(ui).__name__}: ")
    assert metadata["image/png"]["alt"] == bundle["text/plain"]
    with Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))) as picture:
        low, high = picture.convert("L").getextrema()
    assert low < high
    for control in ui.controls.values():
        control.value = ends(control)[-1]
    assert ui._repr_mimebundle_() == (bundle, metadata)
