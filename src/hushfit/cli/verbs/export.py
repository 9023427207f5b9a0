"""``hushfit export``: a model as an ONNX graph."""

from typing import Any

import click

from hushfit.cli._printing import json_option, print_json


@click.command(
    "export",
    short_help="Write a model as an ONNX graph, for serving without Python.",
    epilog="\b\nExample:\n  hushfit export model.json -o model.onnx",
)
@click.argument("model_path", metavar="MODEL", type=click.Path(dir_okay=False))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write the graph (ONNX).",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@json_option
def command(model_path: str, output: str, overwrite: bool, as_json: bool) -> None:
    """Write MODEL as an ONNX graph over its encoded features, with the guarantee as metadata. Needs
    hushfit[onnx].

    The input X has one float for each feature, in the order of the model file: numbers scaled from
    0 at their lowest to 1 at their highest public value, one indicator for each category and one
    for other labels. The outputs are margins and probabilities of classes, or predictions inside
    the public range of the target. Of a ranking model X has the features of a document, and the
    output is its score; of a network the outputs are those of its last layer.
    """
    from hushfit.cli._evidence import refuse_pipelines
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.errors import InvalidArgument
    from hushfit.models import is_network

    refuse_to_overwrite(output, overwrite, ".onnx")
    refuse_pipelines(model_path)
    try:
        about = (_network if is_network(model_path) else _graph)(model_path, output)
    except ModuleNotFoundError as error:
        raise InvalidArgument(
            f"{error.name} is not installed. Install it with: pip install 'hushfit[onnx]'"
        ) from None
    if as_json:
        print_json({"graph": output, **about})
    else:
        click.echo(f"Graph: {output}  ({len(about['features'])} features)")


def _graph(model_path: str, output: str) -> dict[str, Any]:
    from hushfit.models import is_ranker, load_model
    from hushfit.models.onnx import export_onnx

    model = load_model(model_path)
    export_onnx(model, output)
    if not is_ranker(model_path):
        return {"features": model.feature_names, "classes": model.classes}
    names = () if model.schema is None else model.schema.columns
    count = model.estimator.n_features_in_
    return {"features": list(names or (f"feature {k + 1}" for k in range(count)))}


def _network(model_path: str, output: str) -> dict[str, Any]:
    from hushfit.torch import export_onnx, load_network

    model = load_network(model_path)
    export_onnx(model, output, (model.estimator.n_features_in_,))
    return {"features": model.feature_names, "classes": model.classes}
