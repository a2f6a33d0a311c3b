"""Mistakes in users' experiments: each is told in one line, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Run
from own import ENDS, PLAN, written
from own import here as here


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def mine(:\n", "my.py:1: SyntaxError: invalid syntax"),
        ("\nimport nothing_of_that_name\n", "my.py:2: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)\n", "my.py:1: ends the process"),
        (
            PLAN + "def mine():\n    return {}\n",
            "my.py:15: mine returns a dict; return a tidegate.experiments.Plan",
        ),
        (PLAN + "def mine():\n    1 / 0\n", "my.py:16: ZeroDivisionError: division by zero"),
        (PLAN + "def mine(x):\n    1 / 0\n", "my.py:15: mine: the parameter x has no default; give it one"),
        (PLAN + "def mine(x=None):\n    1 / 0\n", "my.py:15: mine: the default of x is None; give a number"),
        (PLAN + "def yours():\n    1 / 0\n", "my.py has no experiment 'mine'; it has none"),
        (
            PLAN + "def mine(x: 'Nothing' = 1):\n    1 / 0\n",
            "my.py:15: mine: the annotation of x, Nothing, cannot be evaluated: NameError: ",
        ),
        (
            PLAN + "def mine(x: float = 0.0):\n    1 / 0\n",
            "x is 0.0; give a number above 0 and up to 1e+09, or say in the experiment that it may be so: "
            "x: Annotated[float, AtLeast(0)]",
        ),
        *(
            (PLAN + ENDS.replace('"one"', name), "its tables are in a folder of that name: give another")
            for name in ("'in/out'", "''", "'..'", "'a\\0'", "'a' * 254")
        ),
        (PLAN.replace('"goodput_mbps"', '"good"') + ENDS, "my.py:14: ColumnNotFoundError: "),
        (PLAN.replace('"10 Mbit/s"', '"10"') + ENDS, "my.py:9: "),
        (PLAN.replace("net.tcp(a, b)", "net.tcp(a, b, cc=1)") + ENDS, "my.py:10: TypeError: "),
        (PLAN.replace("net.tcp(a, b)", "net.at('1 ms', lambda: {}['x'])") + ENDS, "my.py:10: KeyError: 'x'"),
        (
            PLAN.replace("net.tcp(a, b)", "net.at('1 ms', lambda: net.run('2 ms'))") + ENDS,
            "my.py:10: the network is running: an action of it cannot run it once more",
        ),
        (PLAN + ENDS.replace("lambda rows: []", "lambda rows: rows['x']"), "my.py:17: TypeError: "),
        (PLAN + ENDS.replace("Figure()", "Figur()"), "my.py:17: NameError: name 'Figur'"),
        (
            PLAN + ENDS.replace("lambda rows: []", "lambda rows: None"),
            "my.py:17: <lambda> returns None (NoneType); return a list of claims",
        ),
        (
            PLAN + ENDS.replace("lambda rows: []", "lambda rows: [1]"),
            "my.py:17: <lambda> returns a list with 1 (int); return a list of claims",
        ),
        *(
            (
                PLAN
                + "import numpy as np\nfrom tidegate.claims import Claim\n"
                + ENDS.replace("lambda rows: []", f"lambda rows: [{claim}]"),
                f"my.py:19: <lambda> returns a claim with {shown} as {name}; give text",
            )
            for claim, shown, name in (
                (
                    "Claim('a', 'ours', 'it is', None, np.float64(0.5), True)",
                    "np.float64(0.5) (float64)",
                    "measured",
                ),
                ("Claim('a', 'ours', 'it is', None, 0.5, True)", "0.5 (float)", "measured"),
                ("Claim('a', 'ours', 0.5, None, '1', True)", "0.5 (float)", "statement"),
                ("Claim('a', 'paper', 'it is', 0.5, '1', True)", "0.5 (float)", "published"),
                ("Claim('a', 'ours', 'it is', None, '1', False, 0.5)", "0.5 (float)", "why"),
            )
        ),
        (
            PLAN + ENDS.replace("Figure()", "None"),
            "my.py:17: <lambda> returns None (NoneType); return a Matplotlib figure",
        ),
        *(
            (PLAN.replace("return {", f"return {what}; return {{") + ENDS, f"my.py:13: row returns {said}")
            for what, said in (
                ("None", "None (NoneType); return a row, as a dict of columns, or a list of rows"),
                ("[{'a': 1}, 2]", "2 (int); return a row"),
                (
                    "{'a': [{3}]}",
                    "a row with {3} (set) as 'a'; the columns of a row are named by text, and have",
                ),
                ("{3: 1}", "a row with a column 3 (int); columns are named by text"),
                ("{(1, 2): []}", "a row with a column (1, 2) (tuple); columns are named by text"),
                ("{'a': {(1, 2): {}}}", "a row with a column (1, 2) (tuple); columns are named by text"),
                ("{'a': 10**400}", "a row with a number of 1329 bits as 'a'; a whole number has 64 bits"),
                ("{'a': '\\ud800'}", "a row with '\\ud800' (str) as 'a'; the columns of a row"),
                ("{'\\ud800': 1}", "a row with a column '\\ud800' (str); columns are named by text"),
                ("(b := []).append(b) or {'a': b}", "a row with lists in lists as 'a', deeper than 8"),
                *(
                    (
                        f"{{'{name}': 3}}",
                        f"a row with a column '{name}', which each row has of its run; give it another",
                    )
                    for name in ("case", "seed")
                ),
            )
        ),
        # Our functions for users' code are at whoever called them, as NumPy's.
        *(
            (
                PLAN
                + "from tidegate.claims import between, medians\n"
                + ENDS.replace("lambda rows: []", f"lambda rows: [{claim}]"),
                f"my.py:18: {error}",
            )
            for claim, error in (
                ("medians(rows, 'x', lambda row: 'a')", "KeyError: 'x'"),
                ("medians([{'x': None}], 'x', lambda row: 'a')", "TypeError: "),
                ("between('a', 'ours', 'it is', {'x': 'text'}, 0)", "TypeError: "),
                ("between('a', 'paper', 'it is', {'x': 1.0}, 0)", "ValueError: claim a: a claim of ours"),
            )
        ),
        *(
            (
                PLAN.replace("return {", f"return {{'a': {measured}}}; return {{")
                + ENDS
                + "from tidegate.measures import goodputs_mbps, last, sampled_delays, utilisation\n",
                f"my.py:14: {said}",
            )
            for measured, said in (
                ("last(result.notes, 'x')", "there is no note 'x': there are none: a controller"),
                ("sampled_delays(result, 'a->b', 0, 1)", "there is no recorded queue 'a->b': there are none"),
                ("utilisation(result, 'a->b', 0, 1)", "there is no recorded queue 'a->b': there are none"),
                ("goodputs_mbps(result, 5, 9)", "there is no sample of flows from 5 to 9 s; there are none"),
                ("goodputs_mbps(result, 'a', 9)", "TypeError: "),
            )
        ),
        *(
            (PLAN + ENDS.replace("net(),", f"{network},"), f"my.py:17: {said}")
            for network, said in (
                ("lambda seed: None", "<lambda> returns None (NoneType); return a tidegate.network.Network"),
                ("5", "the network of case 'one' is 5 (int); give a Network, or a function of the seed"),
                (
                    "lambda: net()",
                    "<lambda> is called with one argument (int): too many positional arguments",
                ),
            )
        ),
        (PLAN + ENDS.replace('Case("one"', "Case(5"), "my.py:17: a case's name is 5 (int); give text"),
        (PLAN + ENDS.replace(" ms", " parsecs"), "my.py:17: case 'one': until: "),
        (PLAN + ENDS.replace(", row)", ", 5)"), "my.py:17: case 'one' measures by 5 (int); give a function"),
        *(
            (PLAN + ENDS.replace(was, given), f"my.py:17: {said}")
            for was, given, said in (
                (
                    "lambda rows: []",
                    "[]",
                    "the claims of the plan are [] (list); give a function of the rows",
                ),
                (
                    "lambda runs: Figure()",
                    "None",
                    "the plan draws by None (NoneType); give a function of the",
                ),
                ("lambda runs: Figure()", "Figure()", "the plan draws by "),
            )
        ),
        (
            PLAN + ENDS.replace("Plan([Case", "Plan([5, Case"),
            "my.py:16: mine returns a plan with the cases [5, ",
        ),
        (
            PLAN + ENDS.replace("Figure()", "Figure((1e9, 1e9))"),
            "my.py:17: <lambda>: the figure cannot be drawn: ",
        ),
        (
            PLAN.replace("return {", "raise Odd; return {")
            + "class Odd(Exception):\n    def __str__(self): return 1 / 0\n"
            + ENDS,
            "my.py:14: Odd: (its text cannot be made: ZeroDivisionError)",
        ),
        (
            PLAN.replace("return {", "return None; return {")
            + ENDS.replace("row)", "functools.partial(row))")
            + "import functools\n",
            "my.py:13: row returns None",
        ),
    ],
)
def test_a_user_s_mistake_is_one_line_with_its_place(here: Path, tidegate: Run, text: str, said: str) -> None:
    (here / "my.py").write_text(text)
    ran = tidegate("run", "./my.py:mine")
    assert ran.code == 1, ran.err
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert "bug" not in ran.err


def test_a_figure_that_cannot_be_drawn_again_has_its_place(here: Path, tidegate: Run) -> None:
    (here / "my.py").write_text(PLAN + ENDS)
    assert tidegate("run", "./my.py:mine", "--out", "run").code == 0
    before = (here / "run" / "figure.png").read_bytes()
    (here / "my.py").write_text(PLAN + ENDS.replace("Figure()", "Figure((1e9, 1e9))"))
    ran = tidegate("plot", "run", "--source", "./my.py:mine", process=True)
    assert ran.code == 1, ran.err
    assert "my.py:17: <lambda>: the figure cannot be drawn: " in ran.err
    assert (here / "run" / "figure.png").read_bytes() == before


def test_a_process_that_ends_before_its_result_is_told_of(here: Path, tidegate: Run) -> None:
    written(here, PLAN.replace("return {", "import os; os._exit(0); return {") + ENDS)
    ran = tidegate("run", "./my.py:mine", "--repeat", "2", process=True)
    assert ran.code == 1, ran.err
    assert "one, seed 1: its process has ended with status 0 before it had a result" in ran.err
    assert not (here / "runs" / "my.mine").exists()
