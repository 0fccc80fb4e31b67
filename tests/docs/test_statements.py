"""Every statement of the pages on what users bring is run by a test, here or elsewhere.

A sentence that is added or changed fails until it stands below, or in the checks of the page. What
explains or announces and does nothing is listed as such.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import test_import, test_meaning, test_own_data
from tests.docs.statements import statements, unchecked
from tests.train.test_user_modules import ROWS

DOCS = Path(__file__).parents[2] / "docs"
LBQ, TRAIN, NIR, ADOPT = (
    "lbq_hw.datasets.test_own_data",
    "train.test_own_data",
    "train.nir",
    "train.frameworks.test_adopt",
)
SINABS = "train.frameworks.test_sinabs"
CALIBRATE, COMMAND = "train.deploy.test_calibrate", f"{NIR}.test_command"
MODULES = "train.test_user_modules"

SAYS_NOTHING = {
    "own-data.md": (
        "**Arrays.**",
        "**Splits.**",
        "**Range of values.**",
        "Without labels:",
    ),
    "import.md": (
        "`pip install 'lbq-hw[train,import]'`, then",
        "The dataset is used three times:",
        "NIR leaves some behaviour of neurons open, or has changed it:",
        "A weight is a code of few bits times the scale of its channel. Judged by the weights "
        "alone, the best scale has the least squared error. But only inputs show which errors "
        "move a membrane across its threshold.",
        "The same for a graph:",
        "Verilator needs a minute for a core that it has not built before.",
        "NIR has no clamped membranes, so sinabs does not write its `min_v_mem`.",
    ),
}
"""Texts that announce, explain, or tell of programs that are not ours."""

RUN_BY: dict[str, dict[str, tuple[str, ...]]] = {
    "own-data.md": {
        "Two names stand for your own data, in the option `--dataset` of any command and in "
        "`data.name` of a configuration. A network that was trained on your data remembers the "
        "name, so later commands need only `--data`.": (
            f"{LBQ}::test_help_says_what_data_may_be",
            f"{TRAIN}::test_a_run_on_ones_own_data_is_exported_and_evaluated_on_it",
        ),
        "| `npz` | a file | the arrays `images`, uint8, and `labels`, integers from 0 on |": (
            f"{LBQ}::test_a_file_that_is_not_divided_is_the_same_for_every_split",
            f"{LBQ}::test_arrays_that_make_no_dataset_are_one_sentence",
        ),
        "| `images` | a folder | one folder per class, with PNG and JPEG files (`pip install "
        "'lbq-hw[images]'` brings Pillow) |": (
            f"{LBQ}::test_pictures_of_folders_are_read_in_the_order_of_names",
            f"{LBQ}::test_without_pillow_its_extra_is_named",
        ),
        "Arrays are never resized.": (
            f"{LBQ}::test_arrays_that_the_network_does_not_take_are_one_sentence",
        ),
        "**Pictures** become gray or RGB, are turned upright as their EXIF entry says, and are "
        "resized to the input of the network; in training, to a square of `data.size` with "
        "`data.channels`, 3 or 1.": (
            f"{LBQ}::test_pictures_of_every_mode_become_gray_or_rgb_of_the_size_asked_for",
            f"{LBQ}::test_a_resized_picture_keeps_its_left_and_right",
            f"{TRAIN}::test_pictures_are_rgb_unless_told_otherwise",
            f"{TRAIN}::test_keys_of_pictures_are_checked",
            "lbq_hw.datasets.test_reading::test_every_way_in_which_a_camera_turns_a_picture_is_undone",
        ),
        "Transparent pixels have no colour of their own, and no default is right for every "
        "picture: a picture with transparent pixels is refused": (
            "lbq_hw.datasets.test_reading::test_a_palette_with_a_transparent_colour_is_refused_too",
            "lbq_hw.datasets.test_reading::test_an_alpha_channel_that_hides_nothing_needs_no_background",
        ),
        "Classes are numbered in the order of their folders' names, or by value if all names "
        "are numbers.": (
            f"{LBQ}::test_pictures_of_folders_are_read_in_the_order_of_names",
            f"{LBQ}::test_classes_that_are_numbers_are_ordered_by_value",
        ),
        "An empty folder counts as a class too, so that you can try a network on a few pictures.": (
            f"{LBQ}::test_pictures_of_folders_are_read_in_the_order_of_names",
        ),
        "A folder is divided by folders `train` and `test`.": (
            f"{LBQ}::test_divided_pictures_share_the_classes_of_both_splits",
        ),
        "For training on undivided data, `data.validation` says how many images to hold out": (
            f"{TRAIN}::test_data_that_is_not_divided_must_be_held_out",
        ),
        "**Limits.** `--limit N`, and `--images N` of `lbq host`, `lbq sim`, `lbq plan` and "
        "`lbq build`, draw": (
            "lbq_hw.datasets.test_reading::"
            "test_a_limit_draws_images_of_all_classes_with_a_seed_that_is_said",
            "lbq_hw.datasets.test_reading::test_what_is_drawn_is_what_a_build_draws",
        ),
        "A pixel becomes `min(raw >> shift, 2**bits - 1) / full_scale`, and `data.full_scale=0` "
        "stands for `2**bits - 1`:": (
            "docs.test_own_data::test_the_raw_value_of_white_is_that_of_the_table",
        ),
        "| 8 | 0 | 0 | 255 | | 4 | 4 | 0 | 255 | | 4 | 0 | 0 | 15 | | 5 | 0 | 16 | 16 |": (
            "docs.test_own_data::test_the_raw_value_of_white_is_that_of_the_table",
        ),
        "`lbq evaluate`, `lbq build`, `lbq sim` and `lbq host` take `--raw FILE.npy`, which "
        "has one or several inputs as uint8 in the network's input shape; `lbq host` also "
        "takes `--picture FILE ...`.": (
            f"{LBQ}::test_raw_inputs_may_be_one_or_several_with_or_without_their_channel",
            f"{LBQ}::test_raw_inputs_evaluate_to_classes",
            f"{LBQ}::test_a_build_is_checked_with_images_of_ones_own",
            "sim.test_main::test_a_network_runs_on_its_dataset_on_raw_images_or_on_noise",
            "sim.test_board::test_the_host_tells_the_classes_of_images_without_labels",
        ),
        "These commands lead from a folder of pictures to predictions of a simulated board. "
        "For a real board, give its name to `--board`, and use `lbq host --port PORT` in place "
        "of the last command:": (
            "docs.test_own_data::test_the_way_from_pictures_to_predictions_runs_as_printed",
        ),
        "If your folder has a `train.py` or `sim.py` of its own, `python -m train` runs your "
        "file; `lbq train` and `python -m lbq_hw.train` do not.": (
            "lbq_hw.test_command::test_lbq_train_works_beside_a_train_of_the_users_own",
        ),
    },
    "import.md": {
        "A spiking network that was trained in another framework becomes an integer network, "
        "from a module of snnTorch, SpikingJelly or sinabs, or from a NIR file.": (
            f"{ADOPT}::test_without_rounding_every_membrane_of_the_integer_network_is_equal",
            f"{SINABS}::test_a_clamped_network_becomes_integers_with_floors_per_channel",
            f"{COMMAND}::test_a_graph_becomes_a_network_and_a_graph_again",
        ),
        "Neurons are mapped exactly: with float weights all spikes are equal, and only the "
        "rounding of weights changes spikes.": (
            f"{ADOPT}::test_spikes_of_a_trained_network_are_equal_before_its_weights_are_quantized",
            f"{NIR}.test_read::test_a_file_of_snntorch_has_its_spikes",
            f"{NIR}.test_read::test_a_file_of_spikingjelly_has_its_spikes",
        ),
        "If something has no exact form, one error lists every place, the reason, and what to "
        "do.": (
            f"{NIR}.test_read::test_every_reason_is_told_at_once",
            f"{ADOPT}::test_what_has_no_exact_form_is_refused_with_place_reason_and_mend",
        ),
        "A graph says neither how long an input lasts nor which data it reads, so "
        "`--timesteps` and `--dataset` must be given; for [your own data](own-data.md) the "
        "dataset is `npz` or `images`.": (
            f"{COMMAND}::test_what_a_graph_does_not_say_must_be_given",
            f"{COMMAND}::test_pictures_are_resized_to_the_input_of_a_graph_that_has_one",
        ),
        "| training, `--calibrate N` | choosing the scales of float weights "
        "([below](#calibration)) |": (
            f"{NIR}.test_inputs::"
            "test_inputs_to_calibrate_on_are_as_many_as_told_and_else_as_memory_holds",
            f"{COMMAND}::test_calibration_is_told_by_layer_beside_what_differed_before",
        ),
        "| 32 other training inputs (the same inputs, if there are no others) | comparing "
        "network and graph, layer by layer on equal inputs; more than `--most-different` is "
        "refused |": (
            f"{NIR}.test_inputs::"
            "test_few_inputs_are_compared_first_and_serve_for_both_where_there_are_no_others",
            "train.deploy.test_agreement::"
            "test_float_weights_rounded_to_few_bits_are_refused_with_the_layer_and_a_mend",
        ),
        "| test, `--test N` | the accuracy of both |": (
            f"{COMMAND}::test_a_graph_becomes_a_network_and_a_graph_again",
        ),
        "`--input-bits` says how many bits of a pixel the network sees.": (
            "train.test_values::"
            "test_an_import_with_few_bits_drops_the_lower_ones_and_tests_the_graph_on_all",
        ),
        "The output ends with a table: the accuracy of the graph, of the integer network and of "
        "the simulated board on the same test inputs. The simulated board is the RTL in Verilator, "
        "with the smallest core that holds the network; the host uploads the program to it and "
        "reads its logits as it does with any board.": (
            "train.test_brought::test_a_graph_is_imported_with_four_bits_of_pixels",
            "train.test_values::test_an_export_keeps_range_and_names_and_shows_one_table",
        ),
        "If `--data` is given, the board runs the first 20 test inputs, or fewer if the "
        "network is large. `--board-images N` says how many; 0 leaves the board out.": (
            "train.test_values::test_an_export_keeps_range_and_names_and_shows_one_table",
            "train.deploy.test_accuracies::test_all_three_are_measured_on_the_first_images",
            "train.deploy.test_accuracies::test_without_images_for_it_the_board_has_no_row",
            "train.deploy.test_accuracies::"
            "test_a_network_that_takes_minutes_is_simulated_when_told_to",
        ),
        "If the board cannot be simulated, the line below the table says why. If its logits "
        "differ from the integer network's, the command ends with exit code 1.": (
            "train.deploy.test_accuracies::test_a_missing_tool_is_named",
            "train.deploy.test_accuracies::test_a_network_that_no_core_holds_is_left_out",
            "train.test_values::test_a_board_that_differs_ends_with_exit_code_1",
        ),
        "`lbq export` prints the same table if it has data: with `--data`, or for the embedded "
        "digits.": (
            "train.test_values::test_an_export_keeps_range_and_names_and_shows_one_table",
            "train.test_values::test_an_export_of_the_embedded_digits_shows_the_table_too",
        ),
        "| `Conv2d`, `Linear`, `Affine` | a path; weights are rounded to `--weight-bits`, in one "
        "scale per channel, unless they are codes of a power of two already |": (
            f"{NIR}.test_hostile::test_the_graph_itself_is_imported",
            f"{CALIBRATE}::"
            "test_weights_that_are_codes_as_they_are_stay_though_spikes_differ_by_a_rounded_leak",
        ),
        "| `SumPool2d`, `AvgPool2d` | a sum pool of the path behind it | | `Flatten` | nothing |": (
            f"{NIR}.test_hostile::test_the_graph_itself_is_imported",
            f"{NIR}.test_paper::test_it_is_read_with_all_its_weights",
        ),
        "| `IF`, `LIF` | neurons of one level; `r`, `dt` and `v_reset` go into the threshold |": (
            f"{NIR}.test_read::test_a_file_of_snntorch_has_its_spikes",
            f"{NIR}.test_read::test_a_file_of_spikingjelly_has_its_spikes",
        ),
        "| `CubaLIF` | the same, where `tau_syn` is one timestep: its synapse then has no memory "
        "|": (f"{NIR}.test_read::test_a_synapse_without_dynamics_is_a_weight",),
        "| several edges into a node | paths into one layer |": (
            f"{NIR}.test_read::test_edges_into_one_node_are_added",
        ),
        "| `IF`, `LIF` before `Output` | a readout that counts spikes |": (
            f"{COMMAND}::test_a_graph_becomes_a_network_and_a_graph_again",
        ),
        "These are refused: delays, recurrence, synapses with dynamics, membranes that are "
        "read, graphs inside graphs, and time constants or thresholds that differ within a "
        "layer or a channel.": (
            f"{NIR}.test_read::test_what_has_no_exact_form_is_refused_with_place_reason_and_mend",
            f"{NIR}.test_read::test_recurrence_is_refused_with_the_loop",
            f"{NIR}.test_hostile::test_a_broken_graph_is_refused_with_its_places",
        ),
        "`--clamp V` sets it: after the reset of each timestep, no membrane is below V, in the "
        "unit of `v_threshold`.": (
            f"{COMMAND}::"
            "test_a_clamp_that_nir_does_not_say_is_given_and_keeps_the_network_out_of_nir",
        ),
        "A clamp is refused above the resting potential, and with `--reset late`.": (
            f"{COMMAND}::test_a_clamp_without_an_exact_form_is_refused_at_every_neuron",
        ),
        "A broken file is refused in one sentence. A broken graph is refused with the name of "
        "every faulty node: edges that lead nowhere, nodes without input or without reader, "
        "numbers that are complex or not finite, weights with a wrong number of axes, arrays "
        "of more than 2 GiB, links, and an input whose size is not that of the dataset's "
        "images.": (
            f"{NIR}.test_hostile::test_a_broken_graph_is_refused_with_its_places",
            f"{NIR}.test_hostile::test_a_file_that_cannot_be_read_is_no_nir_file",
            f"{NIR}.test_hostile::test_an_input_of_another_size_than_the_data_is_refused",
        ),
        "| `--reset` | `zero` since NIR 1.0.5, `subtract` in older files | snnTorch writes `zero` "
        "whatever its neurons do; what it calls subtract is `late` |": (
            f"{NIR}.test_read::test_what_a_file_does_not_say_is_taken_from_its_version",
            f"{NIR}.test_read::test_a_file_of_snntorch_has_its_spikes",
        ),
        "| `--fires` | `above`: a membrane must pass its threshold | SpikingJelly and sinabs fire "
        "`at` the threshold | | `--dt` | 1e-4, or 1 where all neurons are `IF` with `r` = 1 | |": (
            f"{NIR}.test_read::test_what_a_file_does_not_say_is_taken_from_its_version",
            f"{NIR}.test_read::test_a_file_of_spikingjelly_has_its_spikes",
            f"{NIR}.test_read::test_a_file_of_sinabs_has_its_spikes",
            f"{COMMAND}::test_a_graph_becomes_a_network_and_a_graph_again",
        ),
        "A network is written as NIR if it has neurons of one level, no max-pool, no clamp, and "
        "one kind of reset, which is to zero or by the threshold.": (
            f"{NIR}.test_write::test_what_nir_cannot_say_is_refused_all_at_once",
            f"{COMMAND}::"
            "test_a_clamp_that_nir_does_not_say_is_given_and_keeps_the_network_out_of_nir",
        ),
        "NIR no longer has a reset by subtraction: the graph's metadata tells this project "
        "about it, and a note tells you.": (
            f"{NIR}.test_write::test_what_other_readers_must_be_told_is_noted",
            f"{NIR}.test_write::test_spikes_of_a_written_graph_are_those_of_the_network",
        ),
        "So 21 multiples of each scale are tried, from half to one and a half, and each "
        "channel keeps the multiple with which the fewest spikes differ from the float "
        "network's. Layers are calibrated in order, on the spikes of the layers that were "
        "calibrated before. The least-error scale is one of the 21, so calibration never makes a "
        "channel worse on those inputs.": (
            f"{CALIBRATE}::test_the_scale_of_before_is_tried_first_and_changes_nothing",
            f"{CALIBRATE}::test_on_its_inputs_no_layer_differs_more_than_with_its_scale_of_before",
        ),
        "Networks of snnTorch and SpikingJelly, trained on the digits and calibrated on 256 "
        "training images with 3 or 4 bits, have fewer differing spikes in every layer, on the "
        "test images too.": (
            f"{CALIBRATE}::test_fewer_spikes_of_every_layer_differ_on_inputs_that_were_not_seen",
        ),
        "`--calibrate 0` keeps the scales of least error.": (
            f"{COMMAND}::test_without_calibration_weights_are_rounded_whatever_the_inputs",
        ),
        "Calibration changes nothing but scales. Fraction bits and exponents are the same as "
        "without it.": (
            f"{CALIBRATE}::test_scales_are_those_of_before_times_a_factor_and_all_else_follows",
        ),
        "`calibration` takes raw inputs, as datasets have them, for any model with float "
        "weights. Without it, scales have the least squared error.": (
            "docs.test_import::test_the_blocks_of_the_page_calibrate_a_module_and_its_graph",
            f"{CALIBRATE}::test_on_its_inputs_no_layer_differs_more_than_with_its_scale_of_before",
        ),
        "`net` computes one timestep and its neurons keep their membranes (in snnTorch, "
        "`init_hidden=True`).": (
            f"{ADOPT}::test_what_has_no_exact_form_is_refused_with_place_reason_and_mend",
            f"{ADOPT}::test_a_network_that_loops_over_time_itself_is_refused",
        ),
        "With `static`, all timesteps have the same image; otherwise inputs are `(T, B, C, H, "
        "W)`.": (
            f"{ADOPT}::test_spikes_of_a_trained_network_are_equal_before_its_weights_are_quantized",
            f"{ADOPT}::test_every_option_of_a_leaky_neuron_is_exact_or_refused",
        ),
        '| snnTorch `Leaky`, `reset_mechanism="zero"` | reset to zero | | snnTorch `Leaky`, '
        '`"subtract"` | subtracted after the next leak, so the reset is by threshold / beta | | '
        'snnTorch `Leaky`, `"none"` | no reset |': (
            f"{ADOPT}::test_every_option_of_a_leaky_neuron_is_exact_or_refused",
        ),
        "| SpikingJelly `IFNode`, `LIFNode`, `ParametricLIFNode` | reset to zero, or by "
        "subtraction where `v_reset` is None; `decay_input` and `v_reset` go into the threshold "
        "|": (f"{ADOPT}::test_every_option_of_a_spikingjelly_neuron_is_exact",),
        "| sinabs `IAFSqueeze`, `LIFSqueeze` with `SingleSpike` | reset by subtraction "
        "(`MembraneSubtract`) or to zero (`MembraneReset`); `norm_input` goes into the threshold; "
        "`min_v_mem` is a floor of the membranes, one or per channel |": (
            f"{SINABS}::test_every_option_of_a_neuron_is_exact",
            f"{SINABS}::test_a_clamped_network_becomes_integers_with_floors_per_channel",
        ),
        "sinabs' default `spike_fn`, `MultiSpike`, is refused: it subtracts the threshold once for "
        "each of several spikes.": (f"{SINABS}::test_what_has_no_exact_form_is_refused",),
        'snnTorch\'s `"subtract"` with `reset_delay=False` is refused: if a membrane stays '
        "above its threshold, this neuron then spikes by a rule that no other neuron has.": (
            f"{ADOPT}::test_every_option_of_a_leaky_neuron_is_exact_or_refused",
        ),
        "Per-neuron betas, inhibition, graded spikes, quantized states and neurons of other "
        "kinds are refused too.": (
            f"{ADOPT}::test_what_has_no_exact_form_is_refused_with_place_reason_and_mend",
        ),
        "An integer network has PyTorch's layers and one forward. If a module does more, "
        "`adopt`, `prepare` and `integer_network` read it, or refuse it and name its place.": (
            f"{MODULES}::test_a_users_module_is_exported_as_it_computes_refused_or_noted",
            f"{MODULES}::test_a_users_module_is_prepared_as_it_computes_or_refused",
        ),
        "Export reads a module as it is in evaluation, whatever mode it is in, and leaves its "
        "modes and its membranes as they were.": (
            "train.deploy.test_agreement::"
            "test_a_module_on_its_way_through_training_compares_in_evaluation",
            "train.deploy.test_agreement::test_comparing_leaves_a_module_in_its_modes",
            "train.graph.test_trace::test_tracing_leaves_the_training_mode_alone",
            f"{ADOPT}::test_comparing_leaves_membranes_as_they_were",
            f"{MODULES}::test_a_module_is_exported_alike_in_both_modes",
        ),
        "So does a quantized network of [Brevitas](layers.md#quantized-networks-of-brevitas).": (
            "train.qonnx.test_qonnx::test_1000_images_have_equal_levels_and_outputs",
        ),
        "At the end, all three run the original module in evaluation mode and from rest, "
        "beside the layers that were read from it. If the outputs differ, they raise "
        "`DisagreementError`.": (
            f"{ADOPT}::test_a_module_that_changed_after_it_was_adopted_is_refused",
            f"{MODULES}::test_a_users_module_is_exported_as_it_computes_refused_or_noted",
            f"{MODULES}::test_a_users_module_is_prepared_as_it_computes_or_refused",
        ),
    },
}
"""What other tests run, by the page's own words."""

CHECKED = {
    "own-data.md": (
        *(text for text, _ in test_own_data.SENTENCES),
        *(text for text, _ in test_meaning.CHECKS["own-data.md"]),
    ),
    "import.md": (
        *(text for text, _ in test_meaning.CHECKS["import.md"]),
        *(text for text, _ in test_import.SENTENCES),
        *(
            statement
            for statement in statements((DOCS / "import.md").read_text("utf-8"))
            if statement.startswith("| ") and statement[2:].partition(" | ")[0] in ROWS
        ),
    ),
}


def texts(page: str) -> Iterator[str]:
    yield from SAYS_NOTHING[page]
    yield from RUN_BY[page]
    yield from CHECKED[page]


@pytest.mark.parametrize("page", RUN_BY)
def test_every_statement_of_a_page_is_run(page: str) -> None:
    assert unchecked((DOCS / page).read_text("utf-8"), texts(page)) == []


@pytest.mark.parametrize("page", RUN_BY)
def test_what_is_run_stands_on_the_page(page: str) -> None:
    words = " ".join((DOCS / page).read_text("utf-8").split())
    assert [text for text in (*SAYS_NOTHING[page], *RUN_BY[page]) if text not in words] == []


@pytest.mark.parametrize(
    "test", sorted({test for page in RUN_BY.values() for tests in page.values() for test in tests})
)
def test_a_test_that_is_named_is_there(test: str) -> None:
    module, name = test.split("::")
    assert callable(getattr(importlib.import_module(f"tests.{module}"), name))


def test_a_new_sentence_is_found() -> None:
    page = (
        "# Title\n\nKnown one. It is\nnew.\n\n| a | b |\n|---|---|\n| c | d |\n\n```sh\nno\n```\n"
    )
    assert list(statements(page)) == ["Known one.", "It is new.", "| c | d |"]
    assert unchecked(page, ["Known one."]) == ["It is new.", "| c | d |"]
    assert unchecked(page, ["Known one. It is new.", "| c | d |"]) == []
    assert unchecked(page, ["Known one. It is", "| c | d |"]) == ["It is new."]


def test_a_changed_page_fails() -> None:
    page = (DOCS / "own-data.md").read_text("utf-8")
    changed = page.replace("Arrays are never resized.", "They are resized.")
    assert changed != page
    assert unchecked(changed, texts("own-data.md")) == ["They are resized."]
    assert re.search(r"\| `npz` \|", page)
