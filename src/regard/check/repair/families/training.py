"""Training: dropout only then, and gradients that reach what should learn."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.axes import argument
from regard.check.repair.families.base import Change, change, family, is_constant
from regard.check.repair.program import Program

_CUTS = ("detach", "item", "numpy", "tolist", "round", "sign")


@family("dropout")
def dropouts(program: Program) -> Iterator[Change | None]:
    """Drop weights in training only; this never takes dropout away."""
    for found in program.operations():
        rate = found.keyword("dropout_p")
        if rate is not None and "self.training" not in program.text(rate.value):
            text = f"{program.at(rate.value, 2)} if self.training else 0.0"
            yield change(0.9, program.put(rate.value, text))
        if found.name in ("dropout", "alpha_dropout", "feature_dropout") and found.form != "method":
            training = found.keyword("training")
            if training is None and len(found.args) < 2:
                yield change(0.9, argument(program, found, "training=self.training"))
            elif training is not None:
                yield change(0.9, program.put(training.value, "self.training"))
            elif is_constant(found.args[1], bool):
                yield change(0.9, program.put(found.args[1], "self.training"))
        if found.name in ("Dropout", "AlphaDropout"):
            function = program.function(found.node)
            if function is not None and function.name != "__init__":
                yield change(1.1, program.after(found.node, ".train(self.training)"))
    for node in program.loads():
        # A layer or function that drops, around the weights instead of around the scores.
        found = program.operation(node)
        if found is None or found.operand is None or "drop" not in found.name.lower():
            continue
        statement = program.statement(node)
        function = program.function(node)
        if not isinstance(statement, ast.Assign) or statement.value is not node or function is None:
            continue
        name = program.text(found.operand)
        for other in program.operations("softmax"):
            if program.function(other.node) is not function or other.operand is None:
                continue
            if other.node.lineno <= node.lineno or program.text(other.operand) != name:
                continue
            wrapped = program.text(node).replace(f"({name}", f"({program.text(other.node)}", 1)
            yield change(
                1.3,
                (*program.span(node), name),
                (*program.span(other.node), wrapped),
            )


@family("gradient")
def gradients(program: Program) -> Iterator[Change | None]:
    """Let gradients pass where something cuts them off."""
    for node in program.loads():
        found = program.operation(node)
        if found is not None and found.operand is not None and found.name in _CUTS:
            yield change(0.9, program.put(node, program.text(found.operand)))
        if found is not None and found.form == "library" and found.operand is not None:
            if found.name in ("tensor", "as_tensor", "Tensor", "from_numpy"):
                yield change(1.2, program.put(node, program.text(found.operand)))
        if isinstance(node, ast.Attribute) and node.attr == "data":
            yield change(0.9, program.put(node, program.text(node.value)))
    for found in program.operations():
        for keyword in found.node.keywords:
            if keyword.arg == "requires_grad" and is_constant(keyword.value, bool):
                yield change(1.0, program.put(keyword.value, str(not keyword.value.value)))  # type: ignore[attr-defined]
    for node in ast.walk(program.tree):
        if isinstance(node, ast.With):
            for item in node.items:
                text = program.text(item.context_expr)
                if "no_grad" in text or "inference_mode" in text:
                    head = text.rpartition(".")[0]
                    yield change(1.0, (*program.span(item.context_expr), f"{head}.enable_grad()"))
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                text = program.text(decorator)
                if "no_grad" in text or "inference_mode" in text:
                    head = text.rpartition(".")[0]
                    yield change(1.0, (*program.span(decorator), f"{head}.enable_grad()"))
    for node in program.loads():
        # A buffer that should learn.
        found = program.operation(node)
        if found is None or found.name != "self.register_buffer" or len(found.node.args) < 2:
            continue
        torch = program.alias("torch")
        if torch is not None:
            name, value = found.node.args[0], program.text(found.node.args[1])
            text = f"self.register_parameter({program.text(name)}, {torch}.nn.Parameter({value}))"
            yield change(1.6, program.put(node, text))

