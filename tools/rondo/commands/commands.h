/* SPDX-License-Identifier: MIT
 * The commands. Each receives its own arguments, where argv[0] is its name, and returns the exit status of the tool.
 */
#ifndef RONDO_TOOL_COMMANDS_H
#define RONDO_TOOL_COMMANDS_H

int command_train(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_quantize(int argc, char **argv);
int command_run(int argc, char **argv); /* only with RONDO_TOOL_ONNX, as the next */
int command_info(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_graph(int argc, char **argv);
int command_check(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_report(int argc, char **argv);
int command_session(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_serve_gpt(int argc, char **argv); /* argv[0] is "gpt" */

#endif
