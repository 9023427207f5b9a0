"""``hushfit export``: a model as an ONNX graph."""

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
    the public range of the target.
    """
    from hushfit.cli._evidence import linear_model
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.errors import InvalidArgument

    refuse_to_overwrite(output, overwrite)
    model, _ = linear_model(model_path, "export")
    try:
        from hushfit.models.onnx import export_onnx
    except ModuleNotFoundError:
        raise InvalidArgument(
            "ONNX is not installed. Install it with: pip install 'hushfit[onnx]'"
        ) from None
    export_onnx(model, output)
    if as_json:
        print_json({"graph": output, "features": model.feature_names, "classes": model.classes})
    else:
        click.echo(f"Graph: {output}  ({len(model.feature_names)} features)")
