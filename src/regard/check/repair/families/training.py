"""Training: dropout only then, and gradients that reach what should learn."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.axes import argument
from regard.check.repair.families.base import Change, change, family, turned
from regard.check.repair.program import Program

_CUTS = ("detach", "item", "numpy", "tolist", "round", "sign")
_COPIES = ("tensor", "as_tensor", "Tensor", "from_numpy")
_DROPS = ("dropout", "alpha_dropout", "feature_dropout")


@family("dropout")
def dropouts(program: Program) -> Iterator[Change | None]:
    """Drop weights in training only; this never takes dropout away."""
    for found in program.operations():
        rate = found.keyword("dropout_p")
        if rate is not None and "self.training" not in program.text(rate.value):
            text = f"{program.at(rate.value, 2)} if self.training else 0.0"
            yield change(0.9, program.put(rate.value, text))
        if found.name in _DROPS and found.form != "method":
            training = found.keyword("training")
            if training is not None:
                yield change(0.9, program.put(training.value, "self.training"))
            elif len(found.args) < 2:
                yield change(0.9, argument(program, found, "training=self.training"))
            elif turned(found.args[1]) is not None:
                yield change(0.9, program.put(found.args[1], "self.training"))
        function = program.function(found.node)
        made = found.name in ("Dropout", "AlphaDropout")
        if made and function is not None and function.name != "__init__":
            yield change(1.1, program.after(found.node, ".train(self.training)"))


@family("dropout")
def dropped_scores(program: Program) -> Iterator[Change | None]:
    """Drop weights and not scores: move the call behind the softmax of the same name."""
    for statement in program.statements():
        found = (
            program.operation(statement.value) if isinstance(statement, ast.Assign) else None
        )
        if found is None or found.operand is None or "drop" not in found.name.lower():
            continue
        name = program.text(found.operand)
        for other in program.operations("softmax"):
            same = program.function(other.node) is program.function(statement)
            if not same or other.operand is None or program.text(other.operand) != name:
                continue
            if other.node.lineno > statement.lineno:
                soft, drop = program.text(other.node), program.text(found.node)
                yield change(
                    1.3,
                    (*program.span(found.node), name),
                    (*program.span(other.node), drop.replace(f"({name}", f"({soft}", 1)),
                )


@family("gradient")
def gradients(program: Program) -> Iterator[Change | None]:
    """Let gradients pass where an expression cuts them off."""
    for node in program.loads():
        found = program.operation(node)
        if isinstance(node, ast.Attribute) and node.attr == "data":
            yield change(0.9, program.put(node, program.text(node.value)))
        if found is None or found.operand is None:
            continue
        if found.name in _CUTS:
            yield change(0.9, program.put(node, program.text(found.operand)))
        if found.form == "library" and found.name in _COPIES:
            yield change(1.2, program.put(node, program.text(found.operand)))
        learned = found.keyword("requires_grad")
        other = turned(learned.value) if learned is not None else None
        if learned is not None and other is not None:
            yield change(1.0, program.put(learned.value, other))
        torch = program.alias("torch")
        if found.name == "self.register_buffer" and found.args and torch is not None:
            # A buffer that should learn.
            name, value = program.text(found.operand), program.text(found.args[0])
            text = f"self.register_parameter({name}, {torch}.nn.Parameter({value}))"
            yield change(1.6, program.put(node, text))


@family("gradient")
def blocks_without_gradient(program: Program) -> Iterator[Change | None]:
    """Let gradients pass where a block or a whole function cuts them off."""
    for node in ast.walk(program.tree):
        places: list[ast.expr] = []
        if isinstance(node, ast.With):
            places = [item.context_expr for item in node.items]
        elif isinstance(node, ast.FunctionDef):
            places = node.decorator_list
        for place in places:
            text = program.text(place)
            if "no_grad" in text or "inference_mode" in text:
                head = text.rpartition(".")[0]
                yield change(1.0, (*program.span(place), f"{head}.enable_grad()"))
