import pytest

from regard.errors import InputError
from regard.seq2seq.vocab import BOS, EOS, FIRST, KINDS, PAD, UNK, Vocab


def test_ids_do_not_depend_on_the_order_of_the_texts():
    assert Vocab.of(["ba", "c"], kind="chars") == Vocab.of(["c", "ab"], kind="chars")


def test_encoding_and_decoding_give_the_text_back():
    chars = Vocab.of(["hello there"], kind="chars")
    spaces = Vocab.of(["HH EH L OW"], kind="spaces")
    assert chars.decode(chars.encode("three hot")) == "three hot"
    assert spaces.decode(spaces.encode("OW  L")) == "OW L"


def test_decoding_stops_at_the_end_and_drops_padding():
    vocab = Vocab.of(["abc"], kind="chars")
    a, b, c = vocab.encode("abc")
    assert vocab.decode([BOS, a, PAD, b, EOS, c]) == "ab"


def test_a_composed_and_a_decomposed_letter_are_one_symbol_unless_nfc_is_off():
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    on = Vocab.of([composed], kind="chars")
    off = Vocab.of([composed], kind="chars", nfc=False)
    assert on.encode(decomposed) == on.encode(composed)
    assert on.unknown(decomposed) == []
    assert off.unknown(decomposed) == ["e", "\u0301"]


def test_unknown_symbols_become_unk_and_are_reported_once_in_order():
    vocab = Vocab.of(["ab"], kind="chars")
    assert vocab.encode("xaya") == [UNK, FIRST, UNK, FIRST]
    assert vocab.unknown("yxay") == ["y", "x"]


def test_a_symbol_spelt_like_padding_is_an_ordinary_symbol():
    vocab = Vocab.of(["<pad> <unk>"], kind="spaces")
    assert min(vocab.encode("<pad> <unk>")) >= FIRST


def test_the_json_form_gives_the_same_vocabulary_back():
    vocab = Vocab.of(["ka ki \u00e9"], kind="spaces", nfc=False)
    assert Vocab.from_json(vocab.to_json()) == vocab


_V2 = Vocab(("a",), "chars", "NFD", features=True).to_json()


def test_the_second_version_gives_the_same_vocabulary_back():
    vocab = Vocab(("\tN", "a"), "chars", "NFKC", features=True)
    assert vocab.to_json()["version"] == 2
    assert Vocab.from_json(vocab.to_json()) == vocab


@pytest.mark.parametrize(("form", "nfc"), [("NFC", True), ("none", False)])
def test_what_the_first_version_can_say_is_written_in_it(form, nfc):
    vocab = Vocab(("a",), "spaces", form)
    assert vocab.to_json() == {"kind": "spaces", "nfc": nfc, "symbols": ["a"]}


@pytest.mark.parametrize(
    ("form", "symbols"),
    [
        ("NFC", ["\u00e9", "\ufb01"]),
        ("NFD", ["e", "\u0301", "\ufb01"]),
        ("NFKC", ["\u00e9", "f", "i"]),
        ("none", ["e", "\u0301", "\ufb01"]),
    ],
)
def test_text_is_brought_to_the_normal_form_that_was_asked_for(form, symbols):
    text = "e\u0301\ufb01"
    assert Vocab.of([text], kind="chars", normal_form=form).split(text) == symbols
    if form != "none":
        vocab = Vocab.of(["\u00e9"], kind="chars", normal_form=form)
        assert vocab.encode("e\u0301") == vocab.encode("\u00e9")


def test_an_unknown_normal_form_or_kind_is_refused():
    with pytest.raises(InputError, match="NFC or NFD or NFKC or none"):
        Vocab.of(["a"], kind="chars", normal_form="nfc")
    with pytest.raises(InputError, match="chars or graphemes or spaces or subwords"):
        Vocab.of(["a"], kind="words")


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {"kind": "chars", "nfc": True},
        {"kind": "chars", "nfc": 1, "symbols": ["a"]},
        {"kind": "chars", "nfc": True, "symbols": "abc"},
        {"kind": "chars", "nfc": True, "symbols": [1]},
        {"kind": "words", "nfc": True, "symbols": ["a"]},
        {"kind": "chars", "nfc": True, "symbols": ["a", "a"]},
        {"kind": "chars", "nfc": True, "symbols": [""]},
        {"kind": "subwords", "nfc": True, "symbols": ["a"]},
        {"version": 1, "kind": "chars", "nfc": True, "symbols": ["a"]},
        {"version": [], "kind": "chars", "nfc": True, "symbols": ["a"]},
        _V2 | {"version": 3},
        _V2 | {"version": 2.0},
        _V2 | {"normal_form": "NFX"},
        _V2 | {"features": 1},
        _V2 | {"subwords": "AAAA"},
        _V2 | {"kind": "subwords", "subwords": "no base64"},
        _V2 | {"kind": "subwords"},
        _V2 | {"more": 1},
    ],
)
def test_a_form_that_is_no_vocabulary_is_refused(form):
    with pytest.raises(InputError):
        Vocab.from_json(form)


@pytest.mark.parametrize("index", [-1, 6])
def test_an_id_outside_the_vocabulary_is_refused(index):
    vocab = Vocab.of(["ab"], kind="chars")
    assert len(vocab) == 6
    with pytest.raises(InputError, match="from 0 to 5"):
        vocab.name(index)


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_is_one_symbol_in_front_and_never_a_letter_of_the_same_spelling(kind):
    texts = ["N x\tN;PL", "PL\tV"]
    vocab = Vocab.of(texts, kind=kind, features=True, size=11)
    cut = vocab.split("N x\tN;PL")
    assert cut[:2] == ["\tN", "\tPL"]
    assert not any(symbol.startswith("\t") for symbol in cut[2:])
    assert {"\tN", "\tPL", "\tV"} < set(vocab.symbols)
    assert vocab.join(cut) == "N x\tN;PL"
    assert vocab.label("\tPL") == "[PL]"
    assert vocab.unknown("x\tN;ZZ") == ["\tZZ"]


@pytest.mark.parametrize(
    ("written", "features"),
    [
        ("N;PL;GEN", ["N", "PL", "GEN"]),
        ("pos=V,per=1", ["pos=V", "per=1"]),
        ("Case=Nom|Number=Sing", ["Case=Nom", "Number=Sing"]),
        ("N PL\tGEN", ["N", "PL", "GEN"]),
        ("V;NOM(3,SG);X", ["V", "NOM(3,SG)", "X"]),
        ("V;;NOM(3,SG", ["V", "NOM(3", "SG"]),
        ("", []),
    ],
)
def test_features_are_cut_at_separators_outside_parentheses(written, features):
    vocab = Vocab((), features=True)
    assert vocab.split(f"a\t{written}") == ["\t" + feature for feature in features] + ["a"]


def test_long_features_without_an_end_take_no_long_time():
    vocab = Vocab((), features=True)
    assert len(vocab.split("a\t" + "(," * 49_999)) == 50_000


def test_without_features_a_tab_is_a_character():
    assert Vocab((), kind="chars").split("a\tb") == ["a", "\t", "b"]


def test_a_letter_with_its_marks_is_one_grapheme_and_reaches_the_second_version():
    vocab = Vocab.of(["\u0254\u0303n"], kind="graphemes")
    assert vocab.symbols == ("n", "\u0254\u0303")
    assert vocab.to_json()["version"] == 2
    assert Vocab.from_json(vocab.to_json()) == vocab
    assert vocab.decode(vocab.encode("n\u0254\u0303")) == "n\u0254\u0303"
