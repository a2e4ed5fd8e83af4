"""Contracts guessed from names, words, code and runs."""

import textwrap

import pytest

from regard.check.contract import Contract
from regard.check.roles import Guess, guess
from regard.check.roles.cast import cast
from regard.check.roles.intent import intent
from regard.check.roles.reading import read
from regard.check.subject import Loaded, load
from regard.errors import InputError


def guessed(source: str, entry: str, **more: object) -> Guess:
    loaded = load(textwrap.dedent(source), f"/nowhere/{entry.lower()}.py", entry)
    assert isinstance(loaded, Loaded), loaded
    return guess(loaded, **more)


ADDITIVE = """
    import torch
    import torch.nn as nn

    class Additive(nn.Module):
        def __init__(self, dec_size, enc_size, units):
            super().__init__()
            self.W = nn.Linear(dec_size, units)
            self.U = nn.Linear(enc_size, units)
            self.v = nn.Linear(units, 1)

        def forward(self, state, memory, mask):
            joint = torch.tanh(self.W(state)[:, None] + self.U(memory))
            scores = self.v(joint).squeeze(-1).masked_fill(~mask, -1e9)
            alpha = scores.softmax(dim=-1)
            return torch.einsum("bt,btd->bd", alpha, memory), alpha
"""


def test_an_additive_module_is_understood_without_a_word_of_its_author():
    contract = guessed(ADDITIVE, "Additive").contract
    assert contract.inputs == {
        "state": "batch d_s",
        "memory": "batch T_enc d_h",
        "mask": "batch T_enc",
    }
    assert contract.init == {"dec_size": "d_s", "enc_size": "d_h", "units": "d_attn"}
    assert [r.axes for r in contract.returns] == ["batch d_h", "batch T_enc"]
    assert (contract.weights, contract.sums_over) == ("alpha", (1,))
    assert contract.score == "additive"


def test_a_bare_mask_gets_the_polarity_that_hides_something_and_stays_a_guess():
    for sign, kind in (("~", "keep"), ("", "drop")):
        found = guessed(ADDITIVE.replace("~mask", f"{sign}mask"), "Additive")
        assert found.contract.kinds["mask"] == kind
        assert "kinds.mask" in found.contract.guessed
        assert not found.confident


def test_a_mask_that_is_explained_is_no_guess_even_where_the_code_contradicts():
    source = ADDITIVE.replace(
        "def forward(self, state, memory, mask):\n",
        'def forward(self, state, memory, mask):\n            """mask: True on padding."""\n',
    )
    found = guessed(source, "Additive")
    assert found.contract.kinds["mask"] == "drop"
    assert "kinds.mask" not in found.contract.guessed
    assert any("--kind mask=keep" in text for text in found.assumptions)


def test_time_first_is_found_by_running():
    source = """
        import torch

        def attend(queries, memory):
            scores = torch.einsum("qbd,kbd->bqk", queries, memory)
            weights = scores.softmax(dim=-1)
            return torch.einsum("bqk,kbd->bqd", weights, memory), weights
    """
    contract = guessed(source, "attend").contract
    assert contract.inputs["queries"].split()[:2] == ["T_dec", "batch"]
    assert contract.inputs["memory"].split()[:2] == ["T_enc", "batch"]
    assert [r.axes.split()[:2] for r in contract.returns] == [["batch", "T_dec"]] * 2


def test_of_two_layouts_that_run_the_one_that_keeps_examples_apart_is_taken():
    source = """
        import torch.nn as nn

        class Mixer(nn.Module):
            def __init__(self, width, n_heads):
                super().__init__()
                self.mix = nn.MultiheadAttention(width, n_heads{first})

            def forward(self, x):
                return self.mix(x, x, x, need_weights=False)[0]
    """
    for first, axes in (("", "T batch d_model"), (", batch_first=True", "batch T d_model")):
        contract = guessed(source.replace("{first}", first), "Mixer").contract
        assert contract.inputs == {"x": axes}


def test_what_the_author_states_wins_over_what_would_run_better():
    source = '''
        import torch.nn as nn

        class Mixer(nn.Module):
            """Mixes (batch, steps, width) tensors."""
            def __init__(self, width, n_heads):
                super().__init__()
                self.mix = nn.MultiheadAttention(width, n_heads)

            def forward(self, x):
                """x: (batch, steps, width)"""
                return self.mix(x, x, x, need_weights=False)[0]
    '''
    assert guessed(source, "Mixer").contract.inputs == {"x": "batch T d_model"}


def test_a_crash_that_coincident_sizes_would_hide_keeps_the_axes_apart():
    source = """
        import numpy as np

        def attend(queries, memory):
            e = np.exp(queries @ memory.T)
            weights = e / e.sum(axis=-1)
            return weights @ memory, weights
    """
    found = guessed(source, "attend")
    assert found.contract.inputs == {"queries": "T_dec d_h", "memory": "T_enc d_h"}
    assert found.reasons["runs only when"] == "T_dec = T_enc"
    assert [r.axes for r in found.contract.returns] == ["T_dec d_h", "T_dec T_enc"]
    assert not found.confident


def test_a_target_for_which_no_arguments_can_be_made_is_no_mistake_of_its_author():
    source = """
        def attend(query, table):
            return table.lookup(query)
    """
    found = guessed(source, "attend")
    assert not found.contract.inputs
    assert found.assumptions


def test_a_window_and_its_sides_are_taken_from_a_run():
    source = """
        import torch

        def attend(x):
            n = x.shape[1]
            i = torch.arange(n)
            far = (i[:, None] - i[None]).abs() > 2
            scores = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(far, -1e9)
            return scores.softmax(-1) @ x
    """
    contract = guessed(source, "attend").contract
    assert (contract.causal, contract.window) == (None, 3)


@pytest.mark.parametrize(
    ("offset", "causal"), [("1", "top_left"), ("keys.shape[1] - n + 1", "bottom_right")]
)
def test_the_corner_of_a_causal_pattern_is_taken_from_a_run(offset, causal):
    source = f"""
        import torch

        def attend(queries, keys):
            n = queries.shape[1]
            later = torch.ones(n, keys.shape[1], dtype=torch.bool).triu({offset})
            scores = (queries @ keys.mT).masked_fill(later, -1e9)
            return scores.softmax(-1) @ keys
    """
    assert guessed(source, "attend").contract.causal == causal


def test_a_configuration_object_is_made_from_the_attributes_that_are_read():
    source = """
        import torch.nn as nn
        import torch.nn.functional as F

        class Block(nn.Module):
            def __init__(self, config):
                super().__init__()
                assert config.n_embd % config.n_head == 0
                self.n_head = config.n_head
                self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
                self.drop = config.dropout

            def forward(self, x):
                b, t, c = x.size()
                q, k, v = self.qkv(x).view(b, t, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                return y.transpose(1, 2).reshape(b, t, c)
    """
    contract = guessed(source, "Block").contract
    assert contract.init == {
        "config": {"n_embd": "d_model", "n_head": "heads", "bias": True, "dropout": 0.0}
    }
    assert (contract.inputs, contract.causal) == ({"x": "batch T d_model"}, "top_left")


def test_plain_lists_have_queries_as_wide_as_keys():
    source = """
        import math

        def attend(query, keys):
            scores = [sum(a * b for a, b in zip(query, k)) for k in keys]
            e = [math.exp(s) for s in scores]
            return [x / sum(e) for x in e]
    """
    inputs = guessed(source, "attend").contract.inputs
    assert inputs["query"] == inputs["keys"].split()[-1]


def test_declared_statements_are_kept_and_the_rest_is_guessed():
    declared = Contract.from_mapping({"kinds": {"mask": "drop"}, "score": "concat"})
    found = guessed(ADDITIVE, "Additive", declared=declared)
    assert found.contract.kinds == {"mask": "drop"}
    assert found.contract.score == "concat"
    assert not {"kinds.mask", "score"} & set(found.contract.guessed)
    assert found.contract.inputs["memory"] == "batch T_enc d_h"


def test_a_whole_contract_is_not_touched():
    declared = Contract.from_mapping(
        {"inputs": {"state": "batch d_s", "memory": "batch T_enc d_h", "mask": "batch T_enc"}}
    )
    found = guessed(ADDITIVE, "Additive", declared=declared)
    assert found == Guess(declared, True)


def test_flags_win_over_the_contract():
    declared = Contract.from_mapping({"kinds": {"mask": "drop"}})
    found = guessed(ADDITIVE, "Additive", declared=declared, flags={"kinds": {"mask": "keep"}})
    assert found.contract.kinds == {"mask": "keep"}
    with pytest.raises(InputError, match="mask"):
        guessed(ADDITIVE, "Additive", flags={"masks": "keep"})


def test_a_guess_is_the_same_every_time():
    first, second = (guessed(ADDITIVE, "Additive") for _ in range(2))
    assert first == second


BARE = """
    import torch

    def attend(query, memory, mask):
        scores = query @ memory.transpose(1, 2)
        scores = scores.masked_fill(mask[:, None, :], float("-inf"))
        weights = scores.softmax(-1)
        return weights @ memory, weights
"""


@pytest.mark.parametrize("mask", ["keep", "drop"])
def test_a_stated_polarity_is_that_of_every_mask_and_no_guess(mask):
    found = guessed(BARE, "attend", flags={"mask": mask})
    assert found.contract.kinds == {"mask": mask}
    assert "kinds.mask" not in found.contract.guessed
    assert not any("True =" in text for text in found.assumptions)


def test_a_stated_role_goes_before_the_name_of_an_argument():
    source = BARE.replace("mask[", "hat[").replace("memory, mask)", "memory, hat)")
    found = guessed(source, "attend", flags={"roles": {"hat": "mask"}, "mask": "drop"})
    assert found.contract.kinds == {"hat": "drop"}
    assert found.contract.inputs["hat"] == "batch T_enc"


@pytest.mark.parametrize("flags", [{"mask": "true"}, {"roles": {"memory": "kay"}}])
def test_a_polarity_or_a_role_that_is_none_is_refused(flags):
    with pytest.raises(InputError, match=r"polarity|no role"):
        guessed(BARE, "attend", flags=flags)


IN_WORDS = """
    from torch import nn

    class Cross(nn.Module):
        def __init__(self, embed_dim, num_heads, kdim=None, vdim=None):
            super().__init__()
            self.inner = nn.MultiheadAttention(embed_dim, num_heads, kdim=kdim, vdim=vdim)

        def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
            '''
            Args:
                query: shape (L, E_q) for one example, (L, N, E_q) for many.
                key: shape (S, E_k) for one example, (S, N, E_k) for many.
                value: shape (S, E_v) for one example, (S, N, E_v) for many.
                key_padding_mask: (N, S), keys to ignore. Binary and float masks will do.
                attn_mask: (L, S), which queries may not read which keys.
            '''
            return self.inner(
                query, key, value, key_padding_mask=key_padding_mask, attn_mask=attn_mask
            )
"""


def test_sizes_with_words_of_their_own_fall_back_to_the_one_that_is_given():
    found = guessed(IN_WORDS, "Cross")
    assert found.contract.inputs == {
        "query": "T_dec batch d_model",
        "key": "T_enc batch d_model",
        "value": "T_enc batch d_model",
        "key_padding_mask": "batch T_enc",
    }
    assert found.contract.kinds == {"key_padding_mask": "drop"}
    assert found.contract.weights == found.contract.returns[1].name
    assert any("`attn_mask` is left out" in text for text in found.assumptions)


def test_a_pattern_that_a_mask_brings_is_not_the_codes_own():
    words = "    :param mask: target mask (so as not to condition on future steps)"
    source = f"def attend(query, key, mask):\n    '''\n{words}\n    '''\n    return query\n"
    reading = read(source, "attend")
    assert intent(reading, cast(reading)).causal is None
    reading = read(source.replace(":param mask: target mask", "Never reads"), "attend")
    assert intent(reading, cast(reading)).causal == "top_left"


@pytest.mark.parametrize("words", ["ALiBi without a causal mask", "There is no causal mask"])
def test_a_causal_mask_that_is_said_to_be_absent_is_none(words):
    source = f"def attend(query, key):\n    '{words}.'\n    return query\n"
    reading = read(source, "attend")
    assert intent(reading, cast(reading)).causal is None


BESIDE = """
    import torch
    from torch import nn

    class Pool(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.state = nn.GRUCell(size, size)
            self.query = nn.Parameter(torch.randn(size))

        def forward(self, keys):
            weights = (keys @ self.query).softmax(dim=-1)
            context = torch.einsum("bt,btd->bd", weights, keys)
            return self.state(context)
"""


def test_a_recurrent_network_behind_the_keys_gives_them_no_order():
    assert guessed(BESIDE, "Pool").contract.positions is False


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_a_layer_with_keys_of_its_own_promises_no_softmax_over_the_given_ones(option):
    def score(options):
        inner = f"nn.MultiheadAttention(embed_dim, num_heads{options})"
        source = IN_WORDS.replace(
            "nn.MultiheadAttention(embed_dim, num_heads, kdim=kdim, vdim=vdim)", inner
        )
        return guessed(source, "Cross").contract.score

    assert score("") == "scaled_dot"
    assert score(f", {option}=True") is None


TURNED = """
    import torch

    def turned(x):
        half = x.size(-1) // 2
        angle = torch.arange(x.size(-2))[:, None] * 0.1 ** torch.arange(half)
        a, b = x[..., :half], x[..., half:]
        cos, sin = torch.cos(angle), torch.sin(angle)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attend(q, k, v):
        return (turned(q) @ turned(k).mT / q.size(-1) ** 0.5).softmax(-1) @ v
"""


def test_a_rotation_without_a_name_is_read_from_sines_and_cosines() -> None:
    found = guessed(TURNED, "attend")
    assert found.contract.positions == "rotary"
    assert "positions" not in found.contract.guessed


MASKED_WORD = """
    import numpy as np

    def attend(query, context, mask):
        # query: (batch, out_len, d), context: (batch, query_len, d), mask: (batch, query_len)
        scores = np.einsum("bod,bqd->boq", query, context)
        scores = np.where(mask[:, None] > 0, scores, -1e9)
        e = np.exp(scores - scores.max(axis=2, keepdims=True))
        return np.einsum("boq,bqd->bod", e / e.sum(axis=2, keepdims=True), context)
"""
LONE_LENGTH = """
    import numpy as np

    def pool(states, w, mask):
        '''states: (batch, T_enc, d); w: one learned query; mask: 1 on words.'''
        scores = np.where(mask > 0, np.tanh(states) @ w, -1e9)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (states * (e / e.sum(axis=1, keepdims=True))[:, :, None]).sum(axis=1)
"""


@pytest.mark.parametrize(("source", "entry"), [(MASKED_WORD, "attend"), (LONE_LENGTH, "pool")])
def test_a_mask_lies_along_the_length_that_its_content_is_said_to_have(
    source: str, entry: str
) -> None:
    assert guessed(source, entry).contract.inputs["mask"] == "batch T_enc"


COMPARED = """
    import torch

    def attend(hidden, memory, src):
        '''hidden: (batch, d); memory: (batch, T_enc, d); src: (batch, T_enc), 0 is <pad>.'''
        scores = torch.einsum("bd,btd->bt", hidden, memory).masked_fill(src == 0, -1e9)
        return torch.einsum("bt,btd->bd", scores.softmax(1), memory)
"""


def test_an_argument_that_is_only_compared_holds_ids() -> None:
    assert guessed(COMPARED, "attend").contract.kinds == {"src": "token_ids_pad0"}


CARRIED = """
    import numpy as np

    def decode(words, state, memory, W, U, A):
        '''words: (batch, T_dec, e); state: (batch, s); memory: (batch, T_enc, h)'''
        states = []
        for t in range(words.shape[1]):
            scores = np.einsum("bh,bth->bt", state @ A, memory)
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            context = np.einsum("bt,bth->bh", e / e.sum(axis=1, keepdims=True), memory)
            state = np.tanh(words[:, t] @ W + state @ U + context.sum(1, keepdims=True))
            states.append(state)
        return np.stack(states, axis=1)
"""


def test_the_tanh_of_a_recurrence_makes_no_additive_score() -> None:
    assert guessed(CARRIED, "decode").contract.score != "additive"


def test_what_comes_after_cached_steps_has_a_length_of_its_own() -> None:
    source = """
        import torch

        def step(x, past_k, past_v):
            k, v = torch.cat([past_k, x], dim=1), torch.cat([past_v, x], dim=1)
            return (x @ k.mT / x.size(-1) ** 0.5).softmax(-1) @ v, k, v
    """
    contract = guessed(source, "step").contract
    assert contract.inputs["x"].split()[1] == "T_dec"
    assert contract.out_axes(contract.out_names[1])[1] == "T_mem+T_dec"


TUTORIAL = """
    import torch
    import torch.nn as nn

    class Decoder(nn.Module):
        def __init__(self, hidden_size, words):
            super().__init__()
            self.embedding = nn.Embedding(words, hidden_size)
            self.W = nn.Linear(hidden_size, hidden_size)
            self.U = nn.Linear(hidden_size, hidden_size)
            self.v = nn.Linear(hidden_size, 1)
            self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)

        def forward(self, token, hidden, encoder_outputs, src_mask):
            query = hidden.permute(1, 0, 2)
            scores = self.v(torch.tanh(self.W(query) + self.U(encoder_outputs))).squeeze(2)
            weights = scores.masked_fill(~src_mask, -1e9).softmax(-1).unsqueeze(1)
            context = torch.bmm(weights, encoder_outputs)
            output, hidden = self.gru(torch.cat([self.embedding(token), context], 2), hidden)
            return output, hidden, weights
"""


@pytest.mark.parametrize(
    "said",
    ["", "# token (B, 1), hidden (1, B, H), encoder_outputs (B, S, H), src_mask (B, S)"],
)
def test_a_tutorials_step_is_understood_with_and_without_its_comment(said):
    head = "        def forward(self, token, hidden, encoder_outputs, src_mask):\n"
    source = TUTORIAL.replace(head, f"{head}                {said}\n")
    assert not said or said in source
    assert guessed(source, "Decoder").contract.inputs == {
        "token": "batch 1",
        "hidden": "1 batch d_h",
        "encoder_outputs": "batch T_enc d_h",
        "src_mask": "batch T_enc",
    }


def test_a_constructor_that_wants_matrices_is_no_crash_of_its_author():
    source = """
        class Attention:
            def __init__(self, W, v):
                self.W, self.v = W, v

            def __call__(self, s, H):
                '''s (B, d), H (B, T, d)'''
                e = numpy.tanh((s @ self.W)[:, None] + H) @ self.v
                a = numpy.exp(e - e.max(1, keepdims=True))
                return ((a / a.sum(1, keepdims=True))[..., None] * H).sum(1)
    """
    found = guessed("import numpy\n" + textwrap.dedent(source), "Attention")
    assert not found.contract.inputs
    assert found.crash is not None
