# SPDX-License-Identifier: MIT
"""Writes the cases of the package onnx, of single operators and of small models: generate_suite.py FOLDER

The package's own tool writes models alone; it is given the operators, too.
"""
import sys

import onnx.backend.test.case.model as models
import onnx.backend.test.case.node as nodes
from onnx.backend.test import cmd_tools

collect_models = models.collect_testcases
models.collect_testcases = lambda: nodes.collect_testcases() + collect_models()
sys.argv = [sys.argv[0], "generate-data", "-o", sys.argv[1]]
sys.exit(cmd_tools.main())
