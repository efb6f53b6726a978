/* SPDX-License-Identifier: MIT
 * oneTBB: a flow graph of continue_nodes, and parallel_for for the grid.
 *
 *   tbb         launch = try_put to the sources; the host runs nodes, too, in wait_for_all (one thread: only the host)
 *   tbb-light   the same with the lightweight policy: bodies run within their predecessor, and the sources within the
 *               launch, so nothing is asynchronous
 *   tbb-async   the library's threads only: launch = enqueue into an arena; the last node sets a flag that the host
 *               waits for with pauses, then yields
 */
#include "measure.h"

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

using message = tbb::flow::continue_msg;

enum { PLAIN, LIGHT, ASYNC, VARIANTS };
const char *const names[VARIANTS] = {"tbb", "tbb-light", "tbb-async"};

class peer {
 public:
  virtual void launch() = 0;
  virtual void wait() = 0;
  virtual ~peer() = default;
};

void run_node(const bench_node *node) {
  if (node->blocks == 1) {
    node->body(node->argument, 0);
  } else {
    tbb::parallel_for(0u, node->blocks, [node](uint32_t block) { node->body(node->argument, block); });
  }
}

template <class Policy>
class flow_peer : public peer {
 public:
  flow_peer(bench_graph *graph, tbb::task_arena *arena) : arena_(arena) {
    for (uint32_t i = 0; i < graph->count; i++) {
      const bench_node *node = &graph->nodes[i];
      nodes_.emplace_back(new flow_node(flow_, [node](message) {
        run_node(node);
        return message();
      }));
    }
    if (arena_ != nullptr) add_end();
    for (uint32_t i = 0; i < graph->count; i++) connect(graph, i);
  }

  ~flow_peer() override { flow_.wait_for_all(); }

  void launch() override {
    if (arena_ == nullptr) {
      start_.try_put(message());
      return;
    }
    done_.store(false, std::memory_order_relaxed);
    arena_->enqueue([this] { start_.try_put(message()); });
  }

  void wait() override {
    if (arena_ == nullptr) {
      flow_.wait_for_all();
      return;
    }
    for (int i = 0; !done_.load(std::memory_order_acquire); i++) {
      if (i >= 64) std::this_thread::yield();
    }
  }

 private:
  using flow_node = tbb::flow::continue_node<message, Policy>;

  void add_end() {
    end_.reset(new flow_node(flow_, [this](message) {
      done_.store(true, std::memory_order_release);
      return message();
    }));
  }

  void connect(const bench_graph *graph, uint32_t i) {
    if (bench_is_source(graph, i)) tbb::flow::make_edge(start_, *nodes_[i]);
    for (uint32_t k = graph->successor_start[i]; k < graph->successor_start[i + 1]; k++) {
      tbb::flow::make_edge(*nodes_[i], *nodes_[graph->successors[k]]);
    }
    if (end_ != nullptr && bench_is_sink(graph, i)) tbb::flow::make_edge(*nodes_[i], *end_);
  }

  tbb::flow::graph flow_;
  tbb::flow::broadcast_node<message> start_{flow_};
  std::vector<std::unique_ptr<flow_node>> nodes_;
  std::unique_ptr<flow_node> end_;
  std::atomic<bool> done_{false};
  tbb::task_arena *arena_;
};

void launch(void *self) { static_cast<peer *>(self)->launch(); }
void wait(void *self) { static_cast<peer *>(self)->wait(); }

void measure(int variant, int threads, int shape) {
  bench_graph *graph = bench_graph_create(shape);
  const size_t parallelism = static_cast<size_t>(variant == ASYNC ? threads + 1 : threads);
  tbb::global_control control(tbb::global_control::max_allowed_parallelism, parallelism);
  std::unique_ptr<tbb::task_arena> arena;
  std::unique_ptr<peer> made;
  auto make = [&] {
    if (variant == LIGHT) {
      made.reset(new flow_peer<tbb::flow::lightweight>(graph, nullptr));
    } else {
      made.reset(new flow_peer<tbb::flow::queueing>(graph, arena.get()));
    }
  };
  if (variant == ASYNC) {
    arena.reset(new tbb::task_arena(threads, 0));
    arena->execute(make);
  } else {
    make();
  }
  const bench_engine engine = {names[variant], threads, 1, 0, made.get(), nullptr, launch, wait};
  bench_measure(&engine, graph);
  bench_child_end();
}

}  // namespace

int main() {
  bench_begin("peer_tbb", TBB_runtime_version());
  for (int shape = 0; shape < BENCH_SHAPE_COUNT; shape++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      for (int threads = 1; threads <= 2; threads++) {
        if (bench_wants(shape, names[variant]) && bench_child()) measure(variant, threads, shape);
      }
    }
  }
  return bench_end();
}
