import pytest
import torch

import regard
from regard.errors import BackendError, ConventionError
from regard.kernels import choose, native, torch_op
from regard.kernels.additive import additive_scores

MUCH = 10**6


@pytest.fixture
def missing(monkeypatch):
    """A machine without the native library."""
    nothing = native._Loaded(None, (), "the native library was not built")
    monkeypatch.setattr(native, "_load", lambda: nothing)


@pytest.fixture
def there(monkeypatch):
    """A machine with it; only the choice is asked for, nothing is computed."""
    found = native._Loaded(object(), ("plain", "avx2"), None)
    monkeypatch.setattr(native, "_load", lambda: found)


@pytest.mark.parametrize(
    ("wish", "work", "suits", "expected"),
    [
        ("", MUCH, True, "native"),
        ("", 10, True, "plain"),
        ("", MUCH, False, "blocks"),
        ("", 10, False, "blocks"),
        ("native", 10, True, "native"),
        ("native", MUCH, False, "blocks"),
        ("blocks", MUCH, True, "blocks"),
        ("off", MUCH, True, "plain"),
        ("compile", 10, True, "compile"),
        ("compile", MUCH, False, "compile"),
    ],
)
def test_the_variable_the_work_and_the_arrays_decide(
    monkeypatch, there, wish, work, suits, expected
):
    monkeypatch.setenv(choose.VARIABLE, wish)
    assert choose.additive_path(work, suits_native=suits) == expected


@pytest.mark.parametrize(
    ("wish", "suits", "expected"),
    [
        ("", True, "native"),
        ("", False, "blocks"),
        ("blocks", True, "blocks"),
        ("off", True, "plain"),
    ],
)
def test_a_step_on_prepared_keys_is_native_however_small(
    monkeypatch, there, wish, suits, expected
):
    monkeypatch.setenv(choose.VARIABLE, wish)
    assert choose.additive_path(10, suits_native=suits, prepared=True) == expected


def test_a_small_step_without_the_library_is_plain(monkeypatch, missing):
    monkeypatch.setenv(choose.VARIABLE, "")
    assert choose.additive_path(10, suits_native=True, prepared=True) == "plain"


@pytest.mark.parametrize(
    ("wish", "expected"), [("", "blocks"), ("blocks", "blocks"), ("off", "plain")]
)
def test_without_the_library_nothing_native_is_chosen(monkeypatch, missing, wish, expected):
    monkeypatch.setenv(choose.VARIABLE, wish)
    assert choose.additive_path(MUCH, suits_native=True) == expected


def test_asking_for_a_library_that_is_missing_is_an_error(monkeypatch, missing):
    monkeypatch.setenv(choose.VARIABLE, "native")
    for ask in (lambda: choose.additive_path(1, suits_native=True), regard.backend):
        with pytest.raises(BackendError) as caught:
            ask()
        assert str(caught.value).splitlines() == [
            "REGARD_KERNELS=native, but there is no native library",
            "  expected  the library that the package's build compiles",
            "  got       the native library was not built",
            "  help      `python -m regard.kernels.compile` builds it where a C++ compiler is",
        ]


def test_asking_for_triton_where_it_is_missing_is_an_error(monkeypatch):
    monkeypatch.setenv(choose.VARIABLE, "triton")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for ask in (lambda: choose.additive_path(1, suits_native=True), regard.backend):
        with pytest.raises(BackendError) as caught:
            ask()
        assert str(caught.value).splitlines() == [
            "REGARD_KERNELS=triton, but Triton is not installed",
            "  expected  the package that PyTorch's builds for CUDA bring",
            "  got       no module named triton",
        ]


def test_with_triton_tensors_that_it_does_not_take_are_computed_in_blocks(monkeypatch):
    pytest.importorskip("triton", reason="Triton is not installed")
    monkeypatch.setenv(choose.VARIABLE, "triton")
    assert regard.backend() == (
        "additive scores: Triton for PyTorch's float32 on CUDA devices, in blocks for the rest "
        "(REGARD_KERNELS=triton)"
    )
    given = _given()
    torch.testing.assert_close(additive_scores(*given), _formula(*given), rtol=0, atol=2e-6)


def test_a_value_that_the_variable_cannot_have_is_named(monkeypatch):
    monkeypatch.setenv(choose.VARIABLE, "fast")
    with pytest.raises(ConventionError) as caught:
        regard.backend()
    assert str(caught.value).splitlines() == [
        "the environment variable REGARD_KERNELS has no such value",
        "  expected  off, blocks, compile, triton or native, or not set",
        "  got       REGARD_KERNELS=fast",
    ]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("off", "additive scores: plain formula (REGARD_KERNELS=off)"),
        ("blocks", "additive scores: in blocks (REGARD_KERNELS=blocks)"),
        (
            "compile",
            "additive scores: torch.compile for PyTorch's float32, in blocks for the rest "
            "(REGARD_KERNELS=compile)",
        ),
        (
            "native",
            "additive scores: native with AVX2 for float32 on the CPU; "
            "in blocks for the rest (REGARD_KERNELS=native)",
        ),
    ],
)
def test_backend_says_what_runs_and_why(monkeypatch, there, wish, expected):
    monkeypatch.setenv(choose.VARIABLE, wish)
    assert regard.backend() == expected


def test_backend_says_why_it_is_not_native(monkeypatch, missing):
    monkeypatch.delenv(choose.VARIABLE, raising=False)
    expected = "additive scores: in blocks (the native library was not built)"
    assert regard.backend() == expected


@pytest.fixture
def calls(monkeypatch):
    """How often the operator was called."""
    found = []

    def counted(*given):
        found.append(given)
        return _formula(*given)

    monkeypatch.setattr(torch_op, "additive_scores", counted)
    return found


def _formula(query, key, v, key_mask=None):
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v


def _given(dtype=torch.float32):
    torch.manual_seed(3)
    return [torch.randn(shape, dtype=dtype) for shape in ((2, 5, 7), (2, 11, 7), (7,))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_only_float32_goes_to_the_operator(monkeypatch, there, calls, dtype):
    monkeypatch.setenv(choose.VARIABLE, "native")
    given = _given(dtype)
    scores = additive_scores(*given)
    assert len(calls) == (1 if dtype == torch.float32 else 0)
    assert scores.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 0.2}[dtype]
    torch.testing.assert_close(scores, _formula(*given), rtol=0, atol=tolerance)


def test_another_device_does_not_go_to_the_operator(monkeypatch, there, calls):
    monkeypatch.setenv(choose.VARIABLE, "native")
    asked = []

    def path(work, *, suits_native):
        asked.append(suits_native)
        return "plain"

    monkeypatch.setattr("regard.kernels.additive.additive_path", path)
    scores = additive_scores(*(each.to("meta") for each in _given()))
    assert (asked, calls, scores.device.type) == ([False], [], "meta")


@pytest.mark.parametrize("wish", ["off", "blocks", "native"])
def test_every_path_gives_the_same_scores_and_gradients(monkeypatch, wish):
    if wish == "native" and not native.available():
        pytest.skip(str(native.reason()))
    monkeypatch.setenv(choose.VARIABLE, wish)
    given = [each.requires_grad_() for each in _given()]
    scores, expected = additive_scores(*given), _formula(*given)
    torch.testing.assert_close(scores, expected, rtol=0, atol=2e-6)
    got = torch.autograd.grad(scores.square().sum(), given)
    wanted = torch.autograd.grad(expected.square().sum(), given)
    for mine, theirs in zip(got, wanted, strict=True):
        atol = 1e-6 * float(theirs.abs().max())
        torch.testing.assert_close(mine, theirs, rtol=0, atol=2 * atol)
