/* SPDX-License-Identifier: MIT
 * Taskflow: one task for each node; the executor runs the same taskflow in every replay. launch = executor.run, wait =
 * wait for the future that it returns. The executor's threads run the tasks, and the host only waits. The grid is a
 * parallel loop over the node's blocks in a subflow.
 *
 *   taskflow        the host sleeps until the future is ready
 *   taskflow-spin   the host watches the future with pauses, then yields
 */
#include "measure.h"

#include <taskflow/taskflow.hpp>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace {

enum { SLEEP, SPIN, VARIANTS };
const char *const names[VARIANTS] = {"taskflow", "taskflow-spin"};

class peer {
 public:
  peer(const bench_graph *graph, int threads, bool spins)
      : executor_(static_cast<size_t>(threads)), threads_(static_cast<uint32_t>(threads)), spins_(spins) {
    std::vector<tf::Task> tasks;
    for (uint32_t i = 0; i < graph->count; i++) tasks.push_back(add(&graph->nodes[i]));
    for (uint32_t i = 0; i < graph->count; i++) {
      for (uint32_t k = graph->successor_start[i]; k < graph->successor_start[i + 1]; k++) {
        tasks[i].precede(tasks[graph->successors[k]]);
      }
    }
  }

  void launch() { future_ = executor_.run(flow_); }

  void wait() {
    for (int i = 0; spins_ && future_.wait_for(std::chrono::seconds(0)) != std::future_status::ready; i++) {
      if (i >= 64) std::this_thread::yield();
    }
    future_.wait();
  }

 private:
  tf::Task add(const bench_node *node) {
    if (node->blocks == 1) return flow_.emplace([node] { node->body(node->argument, 0); });
    /* Eight parts for each thread: with one part each, a late thread would delay the end. */
    return flow_.emplace([this, node](tf::Subflow &parts) {
      const uint32_t count = 8 * threads_;
      for (uint32_t part = 0; part < count; part++) {
        parts.emplace([node, part, count] {
          const uint64_t blocks = node->blocks;
          for (uint64_t b = blocks * part / count; b < blocks * (part + 1) / count; b++) {
            node->body(node->argument, static_cast<uint32_t>(b));
          }
        });
      }
    });
  }

  tf::Executor executor_;
  tf::Taskflow flow_;
  tf::Future<void> future_;
  uint32_t threads_;
  bool spins_;
};

void launch(void *self) { static_cast<peer *>(self)->launch(); }
void wait(void *self) { static_cast<peer *>(self)->wait(); }

void measure(int variant, int threads, int shape) {
  bench_graph *graph = bench_graph_create(shape);
  {
    peer made(graph, threads, variant == SPIN);
    const bench_engine engine = {names[variant], threads, 1, 0, &made, nullptr, launch, wait};
    bench_measure(&engine, graph);
  }
  bench_child_end();
}

}  // namespace

int main() {
  bench_begin("peer_taskflow", tf::version());
  for (int shape = 0; shape < BENCH_SHAPE_COUNT; shape++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      for (int threads = 1; threads <= 2; threads++) {
        if (bench_wants(shape, names[variant]) && bench_child()) measure(variant, threads, shape);
      }
    }
  }
  return bench_end();
}
