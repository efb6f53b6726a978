/* SPDX-License-Identifier: MIT
 * Rondo in C++17: a header without a library of its own. It adds ownership, exceptions, lambdas, and kernels whose
 * arguments the compiler checks. The C headers remain the manual: a function here has the errors, threads and lifetimes
 * of the C function that it calls, and get() gives the C handle for everything that has no C++ form.
 *
 *   rondo::device device("cpu");
 *   rondo::stream stream(device);
 *   rondo::kernel<float, const float *, float *> saxpy(device, "saxpy",
 *     [](rondo_blocks blocks, float a, const float *x, float *y) { ... });
 *   rondo::memory<float> x(device, count), y(device, count);
 *   rondo::graph graph = rondo::capture_graph(stream, [&] { stream.launch(saxpy, {blocks}, 0.5f, x, y); });
 *   rondo::exec exec(graph);
 *   exec.launch(stream);
 *   stream.synchronize();
 *
 * Ownership. An object owns its handle, can be moved and not copied, and destroys the handle. get() lends it, release()
 * gives it up. A default-constructed or moved-from object is empty; only assignment and destruction are allowed then.
 * Objects must be destroyed before what they were created from, which the order of local variables does by itself.
 * Destructors never throw. If the C function that destroys fails, the C header says what became of the object:
 * device::close returns the failure that the destructor of a device ignores. A `..._ref` is a handle that somebody else
 * owns.
 *
 * Errors. A call that fails throws rondo::error. With RONDO_NO_EXCEPTIONS defined, or -fno-exceptions, it returns a
 * rondo::result instead, and objects come from static create functions, which take the arguments of the constructors:
 * rondo::stream::create(device). Below, `returns<T>` is T or result<T>. Files of a program may differ in this. Only the
 * C++ library's own exceptions, such as std::bad_alloc, are not errors of this kind.
 *
 * Lambdas are bodies of functions and regions, host functions, host steps and the work of a capture. They return
 * nothing, a rondo_status or a result<void>, and may throw. What a lambda throws comes out of the call that ran it; a
 * capture that it was part of is dropped. Host functions run on threads of the library, so what they throw comes out of
 * the next synchronization of a stream or of the device that finds the failure. If several have thrown on a device
 * since, it is what was thrown first. Callers in C get a status, and the text in rondo_last_error().
 *
 * Lifetime of host functions. A lambda that is enqueued outside of captures is destroyed when it has run; if the device
 * is lost before that, it is not. A lambda that is captured, also by C code, or added to a graph is a user object
 * (<rondo/user_object.h>), which says when it is destroyed: once the graph, its clones, its execs and the recordings of
 * a body are gone or updated, and their last launch has ended. Destroying them does not wait for launches, so what a
 * lambda refers to must live until a synchronization.
 */
#ifndef RONDO_RONDO_HPP
#define RONDO_RONDO_HPP

#if __cplusplus < 201703L
#error "rondo/rondo.hpp needs C++17: compile with -std=c++17"
#endif
#if !defined(RONDO_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define RONDO_NO_EXCEPTIONS 1
#endif

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <rondo/rondo.h>

namespace rondo {

/* Names of the two kinds of error handling differ, so that files of both can be linked. */
#ifdef RONDO_NO_EXCEPTIONS
#define RONDO_RAISE(...) return __VA_ARGS__
inline namespace results {
#else
#define RONDO_RAISE(...) throw __VA_ARGS__
inline namespace exceptions {
#endif

/* Errors ----------------------------------------------------------------------------------------------------------- */

/* What rondo_last_error() said. Copying does not throw. */
class error : public std::runtime_error {
 public:
  /* The error with which a call on this thread has just returned `status`. */
  explicit error(rondo_status status) : error(status, *rondo_last_error()) {}

  rondo_status status() const noexcept { return status_; }
  rondo_reason reason() const noexcept { return reason_; }
  std::uint32_t node() const noexcept { return node_; } /* RONDO_NO_NODE if none */
  std::int32_t driver_code() const noexcept { return driver_code_; }

  /* Makes this the last error of the thread and returns its status, for a callback in C. */
  rondo_status set() const noexcept {
    rondo_error details = {};
    details.status = status_;
    details.reason = reason_;
    details.node = node_;
    details.driver_code = driver_code_;
    details.message = what();
    return rondo_error_set(&details);
  }

 private:
  /* RONDO_NOT_READY has no details, nor has a status that no call on this thread returned. */
  error(rondo_status status, const rondo_error &last)
      : std::runtime_error(last.status == status ? last.message : rondo_status_name(status)),
        status_(status),
        reason_(last.status == status ? last.reason : RONDO_REASON_NONE),
        node_(last.status == status ? last.node : RONDO_NO_NODE),
        driver_code_(last.status == status ? last.driver_code : 0) {}

  rondo_status status_;
  rondo_reason reason_;
  std::uint32_t node_;
  std::int32_t driver_code_;
};

/* A value or an error. Ask before you take: value() needs a value, error() an error. */
template <class T>
class [[nodiscard]] result {
 public:
  using value_type = T;
  result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  result(rondo::error error) : content_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const noexcept { return content_.index() == 0; }
  T &value() &noexcept { return *checked<0>(); }
  T &&value() &&noexcept { return std::move(*checked<0>()); }
  T &operator*() &noexcept { return value(); }
  T &&operator*() &&noexcept { return std::move(*this).value(); }
  T *operator->() noexcept { return checked<0>(); }
  rondo::error &error() noexcept { return *checked<1>(); }
  rondo_status status() const noexcept { return *this ? RONDO_OK : std::get_if<1>(&content_)->status(); }

 private:
  template <std::size_t index>
  auto *checked() noexcept {
    assert(content_.index() == index);
    return std::get_if<index>(&content_);
  }
  std::variant<T, rondo::error> content_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  using value_type = void;
  result() = default;
  result(rondo::error error) : error_(std::move(error)) {}

  explicit operator bool() const noexcept { return !error_.has_value(); }
  rondo::error &error() noexcept {
    assert(error_.has_value());
    return *error_;
  }
  rondo_status status() const noexcept { return error_ ? error_->status() : RONDO_OK; }

 private:
  std::optional<rondo::error> error_;
};

#ifdef RONDO_NO_EXCEPTIONS
template <class T>
using returns = result<T>;
#else
template <class T>
using returns = T;
#endif

/* Throws or returns the error of a C call that failed: rondo::check(rondo_exec_upload(exec.get(), stream.get())). */
inline returns<void> check(rondo_status status) {
  if (status != RONDO_OK) RONDO_RAISE(error(status));
  return returns<void>();
}

namespace detail {

/* The value that `make` returns if the status is OK. */
template <class Make>
auto finish(rondo_status status, Make &&make) -> returns<decltype(make())> {
  if (status != RONDO_OK) RONDO_RAISE(error(status));
  return make();
}

/* OK and NOT_READY as true and false. */
inline returns<bool> answer(rondo_status status) {
  return finish(status == RONDO_NOT_READY ? RONDO_OK : status, [status] { return status == RONDO_OK; });
}

/* Calls what a destructor calls: its failure has nowhere to go. */
template <class C>
void ignore_result(rondo_status (*call)(C *), C *handle) noexcept {
  [[maybe_unused]] const rondo_status status = call(handle);
}
template <class C>
void ignore_result(void (*call)(C *), C *handle) noexcept {
  call(handle);
}

/* Calls a function in C at the end of a scope. */
template <class C, class Returned>
class on_exit {
 public:
  on_exit(Returned (*call)(C *), C *handle) noexcept : call_(call), handle_(handle) {}
  on_exit(const on_exit &) = delete;
  on_exit &operator=(const on_exit &) = delete;
  ~on_exit() {
    if (handle_ != nullptr) ignore_result(call_, handle_);
  }
  void cancel() noexcept { handle_ = nullptr; }

 private:
  Returned (*call_)(C *);
  C *handle_;
};

/* Fails for a rule of this header. */
inline rondo_status refuse(rondo_status status, rondo_reason reason, const char *message) noexcept {
  rondo_error details = {};
  details.status = status;
  details.reason = reason;
  details.node = RONDO_NO_NODE;
  details.message = message;
  return rondo_error_set(&details);
}

}  // namespace detail

/* Handles ---------------------------------------------------------------------------------------------------------- */

/* A handle that somebody else owns. */
template <class C>
class reference {
 public:
  using c_type = C;
  reference() = default;
  explicit reference(C *handle) noexcept : handle_(handle) {}
  C *get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 protected:
  C *handle_ = nullptr;
};

/* A handle with its owner. */
template <class Reference, auto destroy>
class owner : public Reference {
 public:
  using c_type = typename Reference::c_type;
  owner() = default;
  explicit owner(c_type *handle) noexcept : Reference(handle) {} /* takes it */
  owner(owner &&other) noexcept : Reference(other.release()) {}
  owner &operator=(owner &&other) noexcept {
    if (this != &other) {
      reset();
      this->handle_ = other.release();
    }
    return *this;
  }
  ~owner() { reset(); }

  c_type *release() noexcept { return std::exchange(this->handle_, nullptr); }
  void reset() noexcept {
    c_type *const handle = release();
    if (handle != nullptr) detail::ignore_result(destroy, handle);
  }
};

/* Makes an object by the C function that creates its handle, for handles without a constructor here:
 * rondo::make<rondo::session>(rondo_session_create, device.get(), &options). */
template <class Object, class... P, class... A>
returns<Object> make(rondo_status (*create)(P...), A &&...arguments) {
  typename Object::c_type *handle = nullptr;
  const rondo_status status = create(std::forward<A>(arguments)..., &handle);
  return detail::finish(status, [&] { return Object(handle); });
}

template <class C, auto destroy>
using handle = owner<reference<C>, destroy>;

using callables = handle<rondo_callables, rondo_callables_destroy>;
using communicator = handle<rondo_communicator, rondo_communicator_destroy>;
using generator = handle<rondo_generator, rondo_generator_destroy>;
using pool = handle<rondo_pool, rondo_pool_destroy>;
#ifdef RONDO_PROGRAM_H /* the component rondo-tensor is installed */
using compiled = handle<rondo_compiled, rondo_compiled_destroy>;
using program = handle<rondo_program, rondo_program_destroy>;
using user_operator = handle<rondo_operator, rondo_operator_destroy>;
#endif
#ifdef RONDO_SESSION_H /* rondo-session */
using session = handle<rondo_session, rondo_session_destroy>;
#endif

/* Devices ---------------------------------------------------------------------------------------------------------- */

namespace detail {

#ifndef RONDO_NO_EXCEPTIONS
/* What host functions have thrown: the first for each device, and for graphs of C code, whose device is not known. */
struct thrown_list {
  std::mutex mutex;
  std::vector<std::pair<const rondo_device *, std::exception_ptr>> list;

  static thrown_list &instance() {
    static thrown_list all;
    return all;
  }
  std::exception_ptr take(const rondo_device *device) {
    const std::lock_guard<std::mutex> guard(mutex);
    for (auto at = list.begin(); at != list.end(); ++at) {
      if (at->first != device && at->first != nullptr) continue;
      std::exception_ptr thrown = at->second;
      list.erase(at);
      return thrown;
    }
    return nullptr;
  }
  void put(const rondo_device *device, std::exception_ptr thrown) {
    const std::lock_guard<std::mutex> guard(mutex);
    for (const auto &entry : list)
      if (entry.first == device) return;
    list.emplace_back(device, std::move(thrown));
  }
};
#endif

/* Of a call that returns failures of a device's work. */
inline rondo_status after_wait(rondo_status status, [[maybe_unused]] const rondo_device *device) {
#ifndef RONDO_NO_EXCEPTIONS
  if (status == RONDO_EXECUTION_FAILED && rondo_last_error()->reason == RONDO_REASON_HOST_FUNCTION_FAILED)
    if (std::exception_ptr thrown = thrown_list::instance().take(device)) std::rethrow_exception(thrown);
#endif
  return status;
}

inline rondo_status close_device(rondo_device *device) {
  const rondo_status status = rondo_device_close(device);
#ifndef RONDO_NO_EXCEPTIONS
  (void)thrown_list::instance().take(device); /* another device may get its address */
#endif
  return status;
}

}  // namespace detail

using device_ref = reference<rondo_device>;

class device : public owner<device_ref, detail::close_device> {
 public:
  using owner::owner;
  static returns<device> create(const char *name, const rondo_device_options &options = {}) {
    return make<device>(rondo_device_open, name, &options);
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit device(const char *name, const rondo_device_options &options = {}) : device(create(name, options)) {}
#endif

  /* As the destructor. After INVALID_STATE the device is still open. */
  returns<void> close() {
    const rondo_status status = detail::close_device(get());
    if (status != RONDO_INVALID_STATE) release();
    return check(status);
  }
  returns<void> synchronize() const { return check(detail::after_wait(rondo_device_synchronize(get()), get())); }
  returns<rondo_device_info> info() const {
    rondo_device_info info = {};
    const rondo_status status = rondo_device_get_info(get(), &info);
    return detail::finish(status, [&] { return info; });
  }
};

class event : public handle<rondo_event, rondo_event_destroy> {
 public:
  using owner::owner;
  static returns<event> create(const device_ref &device, const rondo_event_options &options = {}) {
    return make<event>(rondo_event_create, device.get(), &options);
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit event(const device_ref &device, const rondo_event_options &options = {}) : event(create(device, options)) {}
#endif

  returns<bool> is_complete() const { return detail::answer(rondo_event_query(get())); }
  returns<void> synchronize() const { return check(rondo_event_synchronize(get())); }
  /* Microseconds from `start` to this event. */
  returns<double> since(const event &start) const {
    double microseconds = 0;
    const rondo_status status = rondo_event_elapsed(start.get(), get(), &microseconds);
    return detail::finish(status, [&] { return microseconds; });
  }
};

/* Spans and memory ------------------------------------------------------------------------------------------------- */

/* A range of elements that somebody else owns: of a vector, an array, memory of a device, or an address and a count. */
template <class T>
class span {
  template <class Range>
  using element_of = std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>;

 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  constexpr span() = default;
  constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <class Range, class = std::enable_if_t<!std::is_same_v<std::decay_t<Range>, span> &&
                                                  std::is_convertible_v<element_of<Range> (*)[], T (*)[]>>>
  constexpr span(Range &&range) noexcept : span(std::data(range), std::size(range)) {}
  /* Elements between braces, for the call to which they are passed. */
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr span(const std::initializer_list<value_type> &list) noexcept : span(std::data(list), list.size()) {}

  constexpr T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T *begin() const noexcept { return data_; }
  constexpr T *end() const noexcept { return data_ + size_; }
  constexpr T &operator[](std::size_t index) const noexcept {
    assert(index < size_);
    return data_[index];
  }
  constexpr span subspan(std::size_t offset, std::size_t count) const noexcept {
    assert(offset <= size_ && count <= size_ - offset);
    return span(data_ + offset, count);
  }
  constexpr span first(std::size_t count) const noexcept { return subspan(0, count); }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};
template <class Range>
span(Range &&) -> span<std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>>;

namespace detail {

template <class Range>
using element_of = typename decltype(span(std::declval<Range &>()))::element_type;

/* Too many bytes become SIZE_MAX, which the allocation refuses. */
template <class T>
constexpr std::size_t bytes_of(std::size_t count) noexcept {
  return count > SIZE_MAX / sizeof(T) ? SIZE_MAX : count * sizeof(T);
}

struct device_space {
  using c_type = rondo_device;
  static rondo_status allocate(rondo_device *device, std::size_t bytes, const char *name, void **out_address) {
    return rondo_malloc(device, bytes, name, out_address);
  }
  static rondo_status free(rondo_device *device, void *address) { return rondo_free(device, address); }
};

struct host_space {
  using c_type = rondo_device;
  static rondo_status allocate(rondo_device *device, std::size_t bytes, const char *, void **out_address) {
    return rondo_host_malloc(device, bytes, out_address);
  }
  static rondo_status free(rondo_device *device, void *address) { return rondo_host_free(device, address); }
};

struct stream_space {
  using c_type = rondo_stream;
  static rondo_status allocate(rondo_stream *stream, std::size_t bytes, const char *name, void **out_address) {
    rondo_malloc_options options = {};
    options.name = name;
    return rondo_malloc_async(stream, bytes, &options, out_address);
  }
  static rondo_status free(rondo_stream *stream, void *address) { return rondo_free_async(stream, address); }
};

template <class T, class Space>
class owned_memory {
  static_assert(std::is_trivially_copyable_v<T>, "memory of a device holds bytes: use a trivially copyable type");

 public:
  using source = reference<typename Space::c_type>;
  static returns<owned_memory> create(const source &from, std::size_t count, const char *name = nullptr) {
    void *address = nullptr;
    const rondo_status status = Space::allocate(from.get(), bytes_of<T>(count), name, &address);
    return finish(status, [&] { return owned_memory(from.get(), static_cast<T *>(address), count); });
  }
#ifndef RONDO_NO_EXCEPTIONS
  owned_memory(const source &from, std::size_t count, const char *name = nullptr)
      : owned_memory(create(from, count, name)) {}
#endif
  owned_memory() = default;
  owned_memory(owned_memory &&other) noexcept : from_(other.from_), size_(other.size_), data_(other.release()) {}
  owned_memory &operator=(owned_memory &&other) noexcept {
    if (this != &other) {
      reset();
      from_ = other.from_;
      size_ = other.size_;
      data_ = other.release();
    }
    return *this;
  }
  ~owned_memory() { reset(); }

  T *get() const noexcept { return data_; }
  T *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  operator T *() const noexcept { return data_; } /* as an argument of a kernel */

  T *release() noexcept {
    size_ = 0;
    return std::exchange(data_, nullptr);
  }
  void reset() noexcept {
    T *const address = release();
    if (address == nullptr) return;
    [[maybe_unused]] const rondo_status status = Space::free(from_, address);
  }

 private:
  owned_memory(typename Space::c_type *from, T *data, std::size_t size) noexcept
      : from_(from), size_(size), data_(data) {}

  typename Space::c_type *from_ = nullptr;
  std::size_t size_ = 0;
  T *data_ = nullptr;
};

}  // namespace detail

/* Memory of a device by rondo_malloc: memory<float> x(device, count, "x"). Wait for the work that uses it before it is
 * destroyed. */
template <class T>
using memory = detail::owned_memory<T, detail::device_space>;

/* Host memory that copies can use directly, by rondo_host_malloc. Destroyed as memory is. */
template <class T>
using host_memory = detail::owned_memory<T, detail::host_space>;

/* Memory in the order of a stream, by rondo_malloc_async: scratch<float> x(stream, count, "x"). In a capture it is an
 * alloc node, and a free node where it is destroyed. */
template <class T>
using scratch = detail::owned_memory<T, detail::stream_space>;

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* A pointer parameter that the kernel writes before it reads: out<float *>. */
template <class Pointer>
struct out {
  static_assert(std::is_pointer_v<Pointer> && !std::is_const_v<std::remove_pointer_t<Pointer>>,
                "out<T *> is a pointer to what the kernel writes");
};

namespace detail {

template <class T>
struct parameter {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel's argument is copied as bytes");
  using type = T;
  static rondo_parameter describe() { return RONDO_SCALAR(T); }
};
template <class T>
struct parameter<const T *> {
  using type = const T *;
  static rondo_parameter describe() { return RONDO_READS; }
};
template <class T>
struct parameter<T *> {
  using type = T *;
  static rondo_parameter describe() { return RONDO_UPDATES; }
};
template <class T>
struct parameter<out<T *>> {
  using type = T *;
  static rondo_parameter describe() { return RONDO_WRITES; }
};
template <class P>
using argument = typename parameter<P>::type;

/* The one value of a lambda without captures. A lambda has no default constructor in C++17, and a C function has no
 * place for it, so it is copied when it is first given. */
template <class F>
const F &stateless(const F *given = nullptr) {
  static const F function = *given;
  return function;
}

/* `place` is the blocks, and for a function that gets it the block. */
template <class F, class... P, std::size_t... index, class... Place>
void call_typed(void *const *arguments, std::index_sequence<index...>, const Place &...place) {
  (void)arguments;
  stateless<F>()(place..., *static_cast<const argument<P> *>(arguments[index])...);
}

template <class F, class... P>
void run_typed(rondo_blocks blocks, void *const *arguments) noexcept {
  call_typed<F, P...>(arguments, std::index_sequence_for<P...>(), blocks);
}

template <class F, class... P>
void run_typed_block(rondo_blocks blocks, const rondo_thread_block *block, void *const *arguments) noexcept {
  call_typed<F, P...>(arguments, std::index_sequence_for<P...>(), blocks, *block);
}

}  // namespace detail

/* Code for devices other than CPUs, as in rondo_kernel_options. */
struct kernel_code {
  const char *cuda_source = nullptr;
  const void *cuda_image = nullptr;
  void *cuda_function = nullptr;
  std::uint32_t block_threads = 0;
  span<const rondo_symbol> symbols = {};
};

/* A kernel with the types of its parameters, from which its accesses follow: const T * is read, T * read and written,
 * out<T *> written before it is read, anything else a scalar. `cpu` is a lambda without captures, or an object without
 * members, that takes the blocks, a const rondo_thread_block & if it wants that, and the arguments; or nullptr. If it
 * throws, the program ends. The layout of the arguments in the CUDA code must be that of the parameters. */
template <class... P>
class kernel : public handle<rondo_kernel, rondo_kernel_destroy> {
  static_assert(sizeof...(P) <= RONDO_MAX_PARAMETERS, "a kernel has at most RONDO_MAX_PARAMETERS parameters");

 public:
  using kernel::owner::owner;
  template <class F>
  static returns<kernel> create(const device_ref &device, const char *name, const F &cpu,
                                const kernel_code &code = {}) {
    if constexpr (std::is_null_pointer_v<F>) {
      return create_from(device, name, nullptr, nullptr, code);
    } else {
      /* a lambda that takes anything is not asked whether it takes a block */
      using takes_arguments = std::is_invocable<const F &, rondo_blocks, detail::argument<P>...>;
      constexpr bool gets_block = std::conjunction_v<
          std::negation<takes_arguments>,
          std::is_invocable<const F &, rondo_blocks, const rondo_thread_block &, detail::argument<P>...>>;
      static_assert(std::is_empty_v<F>, "the CPU function is a lambda without captures: pass values as arguments");
      static_assert(gets_block || takes_arguments::value,
                    "the CPU function takes rondo_blocks and then the kernel's parameters");
      (void)detail::stateless<F>(&cpu);
      if constexpr (gets_block)
        return create_from(device, name, nullptr, detail::run_typed_block<F, P...>, code);
      else
        return create_from(device, name, detail::run_typed<F, P...>, nullptr, code);
    }
  }
#ifndef RONDO_NO_EXCEPTIONS
  template <class F>
  kernel(const device_ref &device, const char *name, const F &cpu, const kernel_code &code = {})
      : kernel(create(device, name, cpu, code)) {}
#endif
  /* The memory of a variable of the code (rondo_kernel_symbol). */
  template <class T>
  returns<span<T>> symbol(const char *name) const {
    void *address = nullptr;
    std::size_t bytes = 0;
    const rondo_status status = rondo_kernel_symbol(this->get(), name, &address, &bytes);
    return detail::finish(status, [&] { return span<T>(static_cast<T *>(address), bytes / sizeof(T)); });
  }

 private:
  static returns<kernel> create_from(const device_ref &device, const char *name, rondo_cpu_function cpu,
                                     rondo_cpu_block_function cpu_block, const kernel_code &code) {
    const rondo_parameter parameters[] = {detail::parameter<P>::describe()..., rondo_parameter{}};
    rondo_kernel_options options = {};
    options.name = name;
    options.cpu = cpu;
    options.cpu_block = cpu_block;
    options.cuda_source = code.cuda_source;
    options.cuda_image = code.cuda_image;
    options.cuda_function = code.cuda_function;
    options.block_threads = code.block_threads;
    options.param_list = sizeof...(P) == 0 ? nullptr : parameters;
    options.param_count = sizeof...(P);
    options.symbols = code.symbols.data();
    options.symbol_count = code.symbols.size();
    return make<kernel>(rondo_kernel_create, device.get(), &options);
  }
};

/* What a kernel that is launched with <<<>>> does with its parameters (rondo_access_declare), by its CUfunction or by
 * the name that the driver knows: rondo::declare_access<const float *, rondo::out<float *>>(device, function). */
template <class... P, class Function>
returns<void> declare_access(const device_ref &device, Function *function) {
  const rondo_parameter parameters[] = {detail::parameter<P>::describe()..., rondo_parameter{}};
  rondo_access_declaration declaration = {};
  declaration.params = parameters;
  declaration.param_count = sizeof...(P);
  if constexpr (std::is_same_v<std::remove_const_t<Function>, char>)
    declaration.name = function;
  else
    declaration.function = function;
  return check(rondo_access_declare(device.get(), &declaration));
}

constexpr rondo_grid grid(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) { return rondo_grid{x, y, z}; }

/* Lambdas ---------------------------------------------------------------------------------------------------------- */

namespace detail {

/* What a lambda returned, as a status. What it throws goes through. */
template <class F, class... A>
rondo_status status_of_call(F &function, A &&...arguments) {
  using returned = std::invoke_result_t<F &, A...>;
  if constexpr (std::is_void_v<returned>) {
    function(std::forward<A>(arguments)...);
    return RONDO_OK;
  } else if constexpr (std::is_same_v<returned, rondo_status>) {
    return function(std::forward<A>(arguments)...);
  } else {
    static_assert(std::is_same_v<returned, result<void>>,
                  "a lambda returns nothing, a rondo_status or a rondo::result<void>");
    result<void> returned_result = function(std::forward<A>(arguments)...);
    return returned_result ? RONDO_OK : returned_result.error().set();
  }
}

#ifndef RONDO_NO_EXCEPTIONS
/* In a catch block: makes the exception the last error of the thread, for C code in between, and returns its status. */
inline rondo_status set_current_exception() noexcept {
  try {
    throw;
  } catch (const error &thrown) {
    return thrown.set();
  } catch (const std::bad_alloc &) {
    return refuse(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "a lambda threw std::bad_alloc");
  } catch (const std::exception &thrown) {
    return refuse(RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED, thrown.what());
  } catch (...) {
    return refuse(RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED,
                  "a lambda threw something that is no std::exception");
  }
}
#endif

/* A lambda that the library calls as a host function or host step. */
struct host_function {
  virtual ~host_function() = default;
  virtual rondo_status call() = 0;
  const rondo_device *device = nullptr;
  bool is_called_once = false;
};

template <class F>
struct host_function_of final : host_function {
  explicit host_function_of(F given) : function(std::move(given)) {}
  rondo_status call() override { return status_of_call(function); }
  F function;
};

inline rondo_status run_host_function(void *user) noexcept {
  auto *const called = static_cast<host_function *>(user);
  const std::unique_ptr<host_function> last(called->is_called_once ? called : nullptr);
#ifdef RONDO_NO_EXCEPTIONS
  return called->call();
#else
  try {
    return called->call();
  } catch (...) {
    const rondo_status status = set_current_exception();
    try {
      thrown_list::instance().put(called->device, std::current_exception());
    } catch (...) { /* no memory: the synchronization throws rondo::error instead */
    }
    return status;
  }
#endif
}

template <class F>
std::unique_ptr<host_function> make_host_function(F &&function) {
  return std::make_unique<host_function_of<std::decay_t<F>>>(std::forward<F>(function));
}

/* The graph, and all that is made from it, retain the value until the last launch has ended. *out_object is what the
 * graph retains; nullptr after a failure. */
template <class T>
rondo_status retain_in(rondo_graph *graph, std::unique_ptr<T> value, rondo_user_object **out_object = nullptr) {
  rondo_user_object *object = nullptr;
  const auto destroy = [](void *user) { delete static_cast<T *>(user); };
  rondo_status status = rondo_user_object_create(value.get(), destroy, 1, nullptr, &object);
  if (status != RONDO_OK) return status;
  (void)value.release();
  status = rondo_graph_retain_object(graph, object, 1, true);
  if (status != RONDO_OK) { /* the object is this function's, and so is the error */
    [[maybe_unused]] const rondo_status gone = rondo_user_object_release(object, 1);
  } else if (out_object != nullptr) {
    *out_object = object;
  }
  return status;
}

/* A call of this thread into C that runs the body of a function and its host steps. It collects what these throw. */
struct tree_frame {
  explicit tree_frame(const void *called_function) : function(called_function), outer(std::exchange(current(), this)) {}
  tree_frame(const tree_frame &) = delete;
  tree_frame &operator=(const tree_frame &) = delete;
  ~tree_frame() { current() = outer; }
  static tree_frame *&current() noexcept {
    thread_local tree_frame *innermost = nullptr;
    return innermost;
  }

  /* Runs a lambda for C code. There is no frame if C code began the call. */
  template <class F>
  static rondo_status run([[maybe_unused]] tree_frame *frame, F &&lambda) noexcept {
    rondo_status status = RONDO_OK;
#ifdef RONDO_NO_EXCEPTIONS
    status = lambda();
#else
    try {
      status = lambda();
    } catch (...) {
      status = set_current_exception();
      if (frame != nullptr) frame->thrown = {std::current_exception(), status, is_error(std::current_exception())};
    }
#endif
    if (frame != nullptr && status != RONDO_OK) frame->has_failed = true;
    return status;
  }
  /* The same for a body. The tree runs it again, eagerly, if it fails while it is recorded: that is right for what a
   * recording refuses, which is a rondo::error, and for all that is thrown after a call of another thread or a library
   * has ended the capture, because each call of the body then fails. It is right for nothing else. */
  template <class F>
  rondo_status run_body([[maybe_unused]] rondo_call *running, F &&body) noexcept {
#ifdef RONDO_NO_EXCEPTIONS
    return run(this, body);
#else
    if (thrown.what && !thrown.may_run_again)
      return run(this, [&]() -> rondo_status { std::rethrow_exception(thrown.what); });
    thrown = {};
    const rondo_status status = run(this, body);
    /* the body has handled what a step threw, and failed for a reason of its own */
    if (status != RONDO_OK && thrown.status != status) thrown = {};
    if (thrown.what && has_died(running)) thrown.may_run_again = true;
    return status;
#endif
  }
  /* Throws again what the step threw that `call` has run. */
  template <class Call>
  rondo_status run_step(Call &&call) {
#ifdef RONDO_NO_EXCEPTIONS
    return call();
#else
    const thrown_lambda before = std::exchange(thrown, thrown_lambda{});
    const rondo_status status = call();
    if (thrown.what) std::rethrow_exception(thrown.what);
    thrown = before;
    return status;
#endif
  }
  /* Throws again what a lambda threw, unless the call failed for another reason. If no lambda failed, the reason may be
   * earlier work that the call waited for. */
  rondo_status passed(rondo_status status, [[maybe_unused]] const rondo_device *device) const {
#ifndef RONDO_NO_EXCEPTIONS
    if (!has_failed) return after_wait(status, device);
    if (status != RONDO_OK && thrown.what && (!thrown.may_run_again || thrown.status == status))
      std::rethrow_exception(thrown.what);
#endif
    return status;
  }

  const void *function;
  tree_frame *outer;
  bool has_failed = false; /* a lambda of the call */
#ifndef RONDO_NO_EXCEPTIONS
  static bool is_error(const std::exception_ptr &thrown) noexcept {
    try {
      std::rethrow_exception(thrown);
    } catch (const error &) {
      return true;
    } catch (...) {
      return false;
    }
  }
  /* Whether the capture in which a body ran is invalid. */
  static bool has_died(rondo_call *running) noexcept {
    rondo_capture_info info = {};
    return rondo_capture_get_info(rondo_call_stream(running), &info) == RONDO_OK &&
           info.state == RONDO_CAPTURE_INVALIDATED;
  }
  struct thrown_lambda {
    std::exception_ptr what;
    rondo_status status = RONDO_OK; /* that C code got for it */
    bool may_run_again = false;     /* the body: this is a rondo::error, or the capture had died */
  };
  thrown_lambda thrown; /* the last one */
#endif
};

/* A host step may call functions of other trees, which are not part of this call. */
inline rondo_status run_host_step(void *user) noexcept {
  tree_frame *const frame = std::exchange(tree_frame::current(), nullptr);
  const rondo_status status = tree_frame::run(frame, [&] { return static_cast<host_function *>(user)->call(); });
  tree_frame::current() = frame;
  return status;
}

inline rondo_status enqueue_host(rondo_stream *stream, std::unique_ptr<host_function> function) {
  rondo_capture_info info = {};
  rondo_status status = rondo_capture_get_info(stream, &info);
  if (status != RONDO_OK) return status;
  function->device = rondo_stream_device(stream);
  host_function *const called = function.get();
  if (info.state == RONDO_CAPTURE_ACTIVE) {
    status = retain_in(info.graph, std::move(function));
    return status != RONDO_OK ? status : rondo_host_async(stream, run_host_function, called);
  }
  called->is_called_once = true;
  status = rondo_host_async(stream, run_host_function, called);
  /* a synchronous device has called it, and then returns its failure; a lost one may still call it */
  const bool is_enqueued =
      status == RONDO_OK || status == RONDO_DEVICE_LOST ||
      (status == RONDO_EXECUTION_FAILED && rondo_last_error()->reason == RONDO_REASON_HOST_FUNCTION_FAILED);
  if (is_enqueued) (void)function.release(); /* destroyed by run_host_function */
  return status;
}

template <class T, class U>
rondo_status describe_copy(span<T> to, span<U> from, rondo_copy *out_copy) {
  static_assert(std::is_same_v<T, std::remove_const_t<U>>, "a copy goes from elements to elements of the same type");
  static_assert(std::is_trivially_copyable_v<T>, "a copy copies bytes");
  if (to.size() != from.size()) {
    const std::string message = "copy: " + std::to_string(from.size()) + " elements to " + std::to_string(to.size()) +
                                ": pass ranges of one size (rondo::span::first)";
    return refuse(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, message.c_str());
  }
  out_copy->dst = to.data();
  out_copy->src = from.data();
  out_copy->width = to.bytes();
  return RONDO_OK;
}

template <class T>
rondo_fill describe_fill(span<T> to, const T &value) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4),
                "a fill has elements of 1, 2 or 4 bytes");
  rondo_fill fill = {};
  std::uint8_t byte = 0;
  std::uint16_t half = 0;
  if constexpr (sizeof(T) == 1) fill.value = (std::memcpy(&byte, &value, 1), byte);
  if constexpr (sizeof(T) == 2) fill.value = (std::memcpy(&half, &value, 2), half);
  if constexpr (sizeof(T) == 4) std::memcpy(&fill.value, &value, 4);
  fill.dst = to.data();
  fill.element_bytes = sizeof(T);
  fill.width = to.size();
  return fill;
}

}  // namespace detail

/* Streams ---------------------------------------------------------------------------------------------------------- */

class stream_ref : public reference<rondo_stream> {
 public:
  using reference::reference;

  device_ref device() const noexcept { return device_ref(rondo_stream_device(get())); }
  /* The driver's handle: stream.native<CUstream_st>() is a CUstream. */
  template <class Native = void>
  Native *native() const noexcept {
    return static_cast<Native *>(rondo_stream_native(get()));
  }
  returns<void> synchronize() const {
    return check(detail::after_wait(rondo_stream_synchronize(get()), device().get()));
  }
  returns<bool> is_complete() const {
    return detail::answer(detail::after_wait(rondo_stream_query(get()), device().get()));
  }
  returns<void> record(const event &event) const { return check(rondo_event_record(event.get(), get())); }
  returns<void> wait(const event &event) const { return check(rondo_stream_wait_event(get(), event.get())); }

  /* A call with other arguments than the kernel's parameters does not compile. */
  template <class... P>
  returns<void> launch(const kernel<P...> &kernel, rondo_grid grid, detail::argument<P>... arguments) const {
    const void *const addresses[] = {static_cast<const void *>(&arguments)..., nullptr};
    return enqueued(rondo_launch(get(), kernel.get(), grid, addresses, sizeof...(P)));
  }
  template <class... P>
  returns<void> launch(const kernel<P...> &kernel, rondo_grid grid, const rondo_launch_config &config,
                       detail::argument<P>... arguments) const {
    const void *const addresses[] = {static_cast<const void *>(&arguments)..., nullptr};
    rondo_launch_options options = {};
    options.config = &config;
    return enqueued(rondo_launch_with(get(), kernel.get(), grid, addresses, sizeof...(P), &options));
  }

  /* Ranges of the same element type and size: copy(y, host), copy(host, rondo::span(y).first(3)). */
  template <class To, class From>
  returns<void> copy(To &&to, From &&from) const {
    rondo_copy copy = {};
    const rondo_status status = detail::describe_copy(span(to), span(from), &copy);
    return enqueued(status != RONDO_OK ? status : rondo_copy_box_async(get(), &copy));
  }
  /* Elements of 1, 2 or 4 bytes. */
  template <class To>
  returns<void> fill(To &&to, const detail::element_of<To> &value) const {
    const rondo_fill fill = detail::describe_fill(span(to), value);
    return enqueued(rondo_fill_async(get(), &fill));
  }
  returns<void> memory_operations(span<const rondo_memory_operation> operations) const {
    return enqueued(rondo_memory_operations_async(get(), operations.data(), operations.size()));
  }
  returns<void> signal(span<const rondo_semaphore_value> values) const {
    return enqueued(rondo_semaphore_signal_async(get(), values.data(), values.size()));
  }
  returns<void> wait(span<const rondo_semaphore_value> values) const {
    return enqueued(rondo_semaphore_wait_async(get(), values.data(), values.size()));
  }
  /* The lambda runs on a thread of the library and must not call Rondo. */
  template <class F>
  returns<void> host(F &&function) const {
    return enqueued(detail::enqueue_host(get(), detail::make_host_function(std::forward<F>(function))));
  }

 private:
  /* On a synchronous device, each call waits for the stream. */
  returns<void> enqueued(rondo_status status) const { return check(detail::after_wait(status, device().get())); }
};

class stream : public owner<stream_ref, rondo_stream_destroy> {
 public:
  using owner::owner;
  static returns<stream> create(const device_ref &device, const char *name = nullptr) {
    rondo_stream_options options = {};
    options.name = name;
    return make<stream>(rondo_stream_create, device.get(), &options);
  }
  /* A stream that somebody else owns and destroys later (rondo_stream_adopt): a CUstream or cudaStream_t; on CPU
   * devices the native() of a stream of another handle of the device. */
  template <class Native>
  static returns<stream> adopt(const device_ref &device, Native *native, const char *name = nullptr) {
    rondo_stream_options options = {};
    options.name = name;
    return make<stream>(rondo_stream_adopt, device.get(), static_cast<void *>(native), &options);
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit stream(const device_ref &device, const char *name = nullptr) : stream(create(device, name)) {}
#endif
};

namespace detail {

/* The text that a C function makes. */
template <class... P, class... A>
returns<std::string> text(rondo_status (*describe)(P...), A... arguments) {
  char *made = nullptr;
  const rondo_status status = describe(arguments..., &made);
  const std::unique_ptr<char, decltype(&rondo_text_free)> owned(made, rondo_text_free);
  return finish(status, [&] { return std::string(made); });
}

inline rondo_node_params describe_node(rondo_node_kind kind, rondo_device *where = nullptr) {
  rondo_node_params params = {};
  params.kind = kind;
  params.device = where;
  return params;
}

}  // namespace detail

/* Graphs and execs ------------------------------------------------------------------------------------------------- */

class graph : public handle<rondo_graph, rondo_graph_destroy> {
 public:
  using owner::owner;
  static returns<graph> create(const device_ref &device, const rondo_graph_options &options = {}) {
    rondo_graph *made = nullptr;
    const rondo_status status = rondo_graph_create(device.get(), &options, &made);
    return detail::finish(status, [&] { return graph(made, device.get()); });
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit graph(const device_ref &device, const rondo_graph_options &options = {}) : graph(create(device, options)) {}
#endif

  /* A graph of the driver (rondo_graph_import): a CUgraph or cudaGraph_t. */
  template <class Native>
  static returns<graph> from_native(const device_ref &device, Native *native,
                                    const rondo_import_options &options = {}) {
    rondo_graph *made = nullptr;
    const rondo_status status = rondo_graph_import(device.get(), static_cast<void *>(native), &options, &made);
    return detail::finish(status, [&] { return graph(made, device.get()); });
  }
  /* The driver's form: native<CUgraph>(). Lambdas run while this object lives. */
  template <class Native>
  returns<Native> native() const {
    void *handle = nullptr;
    const rondo_status status = rondo_graph_native(get(), &handle);
    return detail::finish(status, [&] { return static_cast<Native>(handle); });
  }

  /* Nodes that come after `dependencies`: graph.add_kernel({a, b}, saxpy, rondo::grid(4), 0.5f, x, y). */
  template <class... P>
  returns<rondo_node> add_kernel(span<const rondo_node> dependencies, const kernel<P...> &kernel, rondo_grid grid,
                                 detail::argument<P>... arguments) {
    const void *const addresses[] = {static_cast<const void *>(&arguments)..., nullptr};
    return add(rondo_graph_add_kernel, dependencies, kernel.get(), grid, addresses, sizeof...(P));
  }
  template <class... P>
  returns<rondo_node> add_kernel(span<const rondo_node> dependencies, const kernel<P...> &kernel, rondo_grid grid,
                                 const rondo_launch_config &config, detail::argument<P>... arguments) {
    const void *const addresses[] = {static_cast<const void *>(&arguments)..., nullptr};
    rondo_node_params params = detail::describe_node(RONDO_NODE_KERNEL);
    params.as.kernel.kernel = kernel.get();
    params.as.kernel.grid = grid;
    params.as.kernel.args = addresses;
    params.as.kernel.arg_count = sizeof...(P);
    params.as.kernel.config = &config;
    return add(rondo_graph_add, dependencies, &params);
  }
  /* With `where`, a node of another device than the graph's (rondo_node_params.device). */
  template <class To, class From>
  returns<rondo_node> add_copy(span<const rondo_node> dependencies, To &&to, From &&from,
                               const device_ref &where = {}) {
    rondo_node_params params = detail::describe_node(RONDO_NODE_COPY, where.get());
    const rondo_status status = detail::describe_copy(span(to), span(from), &params.as.copy);
    if (status != RONDO_OK) RONDO_RAISE(error(status));
    return add(rondo_graph_add, dependencies, &params);
  }
  template <class To>
  returns<rondo_node> add_fill(span<const rondo_node> dependencies, To &&to, const detail::element_of<To> &value,
                               const device_ref &where = {}) {
    rondo_node_params params = detail::describe_node(RONDO_NODE_FILL, where.get());
    params.as.fill = detail::describe_fill(span(to), value);
    return add(rondo_graph_add, dependencies, &params);
  }
  returns<rondo_node> add_memory_operations(span<const rondo_node> dependencies,
                                            span<const rondo_memory_operation> operations,
                                            const device_ref &where = {}) {
    rondo_node_params params = detail::describe_node(RONDO_NODE_MEMORY_OPERATIONS, where.get());
    params.as.memory_operations = {operations.data(), operations.size()};
    return add(rondo_graph_add, dependencies, &params);
  }
  returns<rondo_node> add_semaphore_signal(span<const rondo_node> dependencies,
                                           span<const rondo_semaphore_value> values) {
    return add(rondo_graph_add_semaphore_signal, dependencies, values.data(), values.size());
  }
  returns<rondo_node> add_semaphore_wait(span<const rondo_node> dependencies,
                                         span<const rondo_semaphore_value> values) {
    return add(rondo_graph_add_semaphore_wait, dependencies, values.data(), values.size());
  }
  returns<rondo_node> add_empty(span<const rondo_node> dependencies) {
    return add(rondo_graph_add_empty, dependencies);
  }
  returns<rondo_node> add_child(span<const rondo_node> dependencies, const graph &child) {
    return add(rondo_graph_add_child, dependencies, child.get());
  }
  /* The lambda runs on a thread of the library and must not call Rondo. */
  template <class F>
  returns<rondo_node> add_host(span<const rondo_node> dependencies, F &&function) {
    auto owned = detail::make_host_function(std::forward<F>(function));
    owned->device = device_;
    void *const user = owned.get();
    rondo_user_object *object = nullptr;
    rondo_node node = {};
    rondo_status status = detail::retain_in(get(), std::move(owned), &object);
    if (status != RONDO_OK) RONDO_RAISE(error(status));
    status =
        rondo_graph_add_host(get(), dependencies.data(), dependencies.size(), detail::run_host_function, user, &node);
    if (status != RONDO_OK) { /* releasing the lambda leaves the error */
      [[maybe_unused]] const rondo_status gone = rondo_graph_release_object(get(), object, 1);
    }
    return detail::finish(status, [&] { return node; });
  }
  /* A full edge, or a programmatic one between kernels. */
  returns<void> add_edge(rondo_node from, rondo_node to, const rondo_edge_data &data = {}) {
    return check(rondo_graph_add_edges_with(get(), &from, &to, &data, 1));
  }
  /* The value, such as a std::shared_ptr or a vector that a copy reads, lives until nothing made from the graph can run
   * any more (<rondo/user_object.h>). */
  template <class T>
  returns<void> retain(T &&value) {
    return check(detail::retain_in(get(), std::make_unique<std::decay_t<T>>(std::forward<T>(value))));
  }

  returns<std::vector<rondo_node>> nodes() const {
    std::size_t count = 0;
    rondo_status status = rondo_graph_nodes(get(), nullptr, &count);
    std::vector<rondo_node> nodes(count);
    if (status == RONDO_OK && count > 0) status = rondo_graph_nodes(get(), nodes.data(), &count);
    return detail::finish(status, [&] { return std::move(nodes); });
  }
  returns<std::string> to_json(bool with_addresses = false) const {
    return detail::text(rondo_graph_to_json, get(), with_addresses);
  }
  returns<std::string> to_dot(bool with_addresses = false) const {
    return detail::text(rondo_graph_to_dot, get(), with_addresses);
  }

 private:
  template <class... P, class... A>
  returns<rondo_node> add(rondo_status (*function)(P...), span<const rondo_node> dependencies, A... arguments) const {
    rondo_node node = {};
    const rondo_status status = function(get(), dependencies.data(), dependencies.size(), arguments..., &node);
    return detail::finish(status, [&] { return node; });
  }

  friend class capture;
  friend class exec;
  graph(rondo_graph *made, const rondo_device *device) noexcept : owner(made), device_(device) {}

  const rondo_device *device_ = nullptr;
};

class exec : public handle<rondo_exec, rondo_exec_destroy> {
 public:
  using owner::owner;
  static returns<exec> create(const graph &graph, const rondo_instantiate_options &options = {}) {
    return make<exec>(rondo_instantiate, graph.get(), &options);
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit exec(const graph &graph, const rondo_instantiate_options &options = {}) : exec(create(graph, options)) {}
#endif

  /* The driver's handle: native<CUgraphExec>(). */
  template <class Native>
  returns<Native> native() const {
    void *handle = nullptr;
    const rondo_status status = rondo_exec_native(get(), &handle);
    return detail::finish(status, [&] { return static_cast<Native>(handle); });
  }

  returns<void> upload(const stream_ref &stream) const { return check(rondo_exec_upload(get(), stream.get())); }
  returns<void> launch(const stream_ref &stream) const {
    return check(detail::after_wait(rondo_exec_launch(get(), stream.get()), stream.device().get()));
  }
  returns<void> update(const graph &graph) { return check(rondo_exec_update(get(), graph.get(), nullptr)); }
  /* Replaces the graph of a child node by one of the same topology. */
  returns<void> replace_child(rondo_node node, const graph &child) {
    rondo_node_params params = {};
    params.kind = RONDO_NODE_CHILD;
    params.as.child = child.get();
    return check(rondo_exec_set_params(get(), node, &params));
  }
};

/* Captures --------------------------------------------------------------------------------------------------------- */

/* A capture from here to end(), on the thread that made it. Without end(), also because of an exception, the capture is
 * ended and what it recorded is dropped. */
class capture {
 public:
  static returns<capture> create(const stream_ref &stream, rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL) {
    capture made;
    const rondo_status status = made.begin(stream.get(), mode);
    return detail::finish(status, [&] { return std::move(made); });
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit capture(const stream_ref &stream, rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL)
      : capture(create(stream, mode)) {}
#endif
  capture(capture &&other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  capture &operator=(capture &&) = delete;
  ~capture() {
    if (stream_ == nullptr) return;
    rondo_graph *dropped = nullptr;
    if (rondo_capture_end(stream_, &dropped) == RONDO_OK) detail::ignore_result(rondo_graph_destroy, dropped);
  }

  returns<graph> end() {
    rondo_graph *made = nullptr;
    const rondo_status status = rondo_capture_end(stream_, &made);
    if (status != RONDO_OK) RONDO_RAISE(failed(status));
    return graph(made, rondo_stream_device(std::exchange(stream_, nullptr)));
  }

 private:
  capture() = default;
  rondo_status begin(rondo_stream *stream, rondo_capture_mode mode) {
    const rondo_status status = rondo_capture_begin(stream, mode);
    if (status == RONDO_OK) stream_ = stream;
    return status;
  }
  /* The capture continues after these two. */
  error failed(rondo_status status) {
    const error why(status);
    if (why.reason() != RONDO_REASON_WRONG_THREAD && why.reason() != RONDO_REASON_UNMATCHED_STREAM) stream_ = nullptr;
    return why;
  }

  rondo_stream *stream_ = nullptr;
};

/* The graph of what `enqueue` enqueues on the stream, and on streams that it forks and joins. */
template <class F>
returns<graph> capture_graph(const stream_ref &stream, F &&enqueue,
                             rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL) {
#ifdef RONDO_NO_EXCEPTIONS
  result<capture> begun = capture::create(stream, mode);
  if (!begun) return begun.error();
  capture capturing = std::move(*begun);
#else
  capture capturing(stream, mode);
#endif
  const rondo_status status = detail::status_of_call(enqueue);
  if (status != RONDO_OK) RONDO_RAISE(error(status));
  return capturing.end();
}

/* A recording: capture, graph, exec and memory in one object (<rondo/recording.h>). */
class recording : public handle<rondo_recording, rondo_recording_destroy> {
 public:
  using owner::owner;
  static returns<recording> create(const device_ref &device, const rondo_recording_options &options = {}) {
    return make<recording>(rondo_recording_create, device.get(), &options);
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit recording(const device_ref &device, const rondo_recording_options &options = {})
      : recording(create(device, options)) {}
#endif

  /* Records what `enqueue` enqueues. If that fails, the recording is empty. */
  template <class F>
  returns<void> capture(const stream_ref &stream, F &&enqueue, rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL) {
    rondo_status status = rondo_recording_capture_begin(get(), stream.get(), mode);
    if (status != RONDO_OK) RONDO_RAISE(error(status));
    detail::on_exit<rondo_recording, void> drop(rondo_recording_reset, get());
    status = detail::status_of_call(enqueue);
    if (status == RONDO_OK) status = rondo_recording_capture_end(get(), stream.get());
    if (status != RONDO_OK) RONDO_RAISE(error(status));
    drop.cancel();
    return returns<void>();
  }
  returns<void> replay(const stream_ref &stream) const {
    return check(detail::after_wait(rondo_recording_replay(get(), stream.get()), stream.device().get()));
  }
  /* Makes the recording empty. */
  void clear() noexcept { rondo_recording_reset(get()); }
};

/* Trees ------------------------------------------------------------------------------------------------------------ */

/* A reference to an output of a function, or to memory of a tree. */
class buffer : public handle<rondo_buffer, rondo_buffer_release> {
 public:
  using owner::owner;

  /* Another reference to the same memory. */
  buffer share() const noexcept {
    if (get() != nullptr) rondo_buffer_retain(get());
    return buffer(get());
  }
  template <class T>
  returns<T *> address() const {
    void *address = nullptr;
    const rondo_status status = rondo_buffer_address(get(), &address);
    return detail::finish(status, [&] { return static_cast<T *>(address); });
  }
  /* Fills the range from the buffer's element `first` on. */
  template <class To>
  returns<void> copy_to(const stream_ref &stream, To &&to, std::size_t first = 0) const {
    const span range(to);
    using element = detail::element_of<To>;
    return check(rondo_buffer_copy(get(), stream.get(), detail::bytes_of<element>(first), range.data(), range.bytes()));
  }
  returns<buffer> clone(const stream_ref &stream) const {
    return make<buffer>(rondo_buffer_clone, get(), stream.get());
  }
};

/* The value of an input: a buffer, a range, or a number for RONDO_INPUT_SCALAR. */
inline rondo_input input(const buffer &buffer) {
  rondo_input input = {};
  input.buffer = buffer.get();
  return input;
}
template <class Range, class = detail::element_of<Range>>
rondo_input input(Range &&range) {
  const span memory(range);
  rondo_input input = {};
  input.address = const_cast<void *>(static_cast<const void *>(memory.data()));
  input.bytes = memory.bytes();
  return input;
}
inline rondo_input scalar_input(std::uint64_t value) {
  rondo_input input = {};
  input.scalar = value;
  return input;
}

/* One run of a body, in which it is valid. */
class call : public reference<rondo_call> {
 public:
  using reference::reference;

  stream_ref stream() const noexcept { return stream_ref(rondo_call_stream(get())); }
  template <class T>
  T *input(std::size_t index) const noexcept {
    return static_cast<T *>(rondo_call_input(get(), index));
  }
  /* The input with its bytes, type, shape and scalar. */
  returns<rondo_input> input_details(std::size_t index) const {
    rondo_input input = {};
    const rondo_status status = rondo_call_get_input(get(), index, &input);
    return detail::finish(status, [&] { return input; });
  }
  /* Allocates output `index` with `count` elements. */
  template <class T>
  returns<T *> output(std::size_t index, std::size_t count, const rondo_output_options &options = {}) const {
    void *address = nullptr;
    const rondo_status status = rondo_call_output(get(), index, detail::bytes_of<T>(count), &options, &address);
    return detail::finish(status, [&] { return static_cast<T *>(address); });
  }
  /* The lambda runs in every call of the function, also in replays, so what it refers to must live as long. */
  template <class F>
  returns<void> host_step(F &&step) const {
    auto function = detail::make_host_function(std::forward<F>(step));
    detail::host_function *const called = function.get();
    detail::tree_frame *const frame = detail::tree_frame::current();
    assert(frame != nullptr);
    rondo_capture_info info = {};
    rondo_status status = rondo_capture_get_info(rondo_call_stream(get()), &info);
    if (status == RONDO_OK && info.graph != nullptr) /* otherwise it runs now, and only now */
      status = detail::retain_in(info.graph, std::move(function));
    if (status == RONDO_OK)
      status = frame->run_step([&] { return rondo_call_host_step(get(), detail::run_host_step, called); });
    return check(detail::after_wait(status, stream().device().get()));
  }
};

class tree : public handle<rondo_tree, rondo_tree_destroy> {
 public:
  using owner::owner;
  static returns<tree> create(const device_ref &device, const rondo_tree_options &options = {}) {
    return make<tree>(rondo_tree_create, device.get(), &options);
  }
#ifndef RONDO_NO_EXCEPTIONS
  explicit tree(const device_ref &device, const rondo_tree_options &options = {}) : tree(create(device, options)) {}
#endif

  returns<void> mark_step() const { return check(rondo_tree_mark_step(get())); }
  /* The calls in `calls` are one step, which ends also if it throws. */
  template <class F>
  returns<void> step(F &&calls) const {
    rondo_status status = rondo_tree_step_begin(get());
    if (status != RONDO_OK) RONDO_RAISE(error(status));
    detail::on_exit<rondo_tree, rondo_status> end(rondo_tree_step_end, get());
    status = detail::status_of_call(calls);
    if (status != RONDO_OK) RONDO_RAISE(error(status));
    end.cancel();
    return check(rondo_tree_step_end(get()));
  }
  returns<rondo_tree_info> info() const {
    rondo_tree_info info = {};
    const rondo_status status = rondo_tree_get_info(get(), &info);
    return detail::finish(status, [&] { return info; });
  }
  returns<std::string> explain(rondo_explain_format format = RONDO_EXPLAIN_TEXT) const {
    return detail::text(rondo_tree_explain, get(), format);
  }
};

namespace detail {

struct function_body {
  virtual ~function_body() = default;
  virtual rondo_status run(call &call) = 0;

  static rondo_status entry(rondo_call *running, void *user) noexcept {
    auto *const body = static_cast<function_body *>(user);
    tree_frame *const frame = tree_frame::current();
    if (frame != nullptr && frame->function == body) return body->run_in(*frame, running);
    tree_frame own(body); /* C code calls the function, perhaps in the body of another one */
    return body->run_in(own, running);
  }
  rondo_status run_in(tree_frame &frame, rondo_call *running) noexcept {
    return frame.run_body(running, [&] {
      call call(running);
      return run(call);
    });
  }
};

template <class F>
struct function_body_of final : function_body {
  explicit function_body_of(F given) : function(std::move(given)) {}
  rondo_status run(call &call) override { return status_of_call(function, call); }
  F function;
};

}  // namespace detail

/* A function of a tree, whose body is a lambda that takes a rondo::call &. Destroy it before the tree. */
class function : public handle<rondo_function, rondo_function_destroy> {
 public:
  /* `inputs`: the kinds, such as {RONDO_INPUT_MOVING}. Name, inputs, body and user of `options` are ignored. */
  template <class F>
  static returns<function> create(const tree &tree, const char *name, span<const std::uint32_t> inputs, F &&body,
                                  rondo_function_options options = {}) {
    auto owned = std::make_unique<detail::function_body_of<std::decay_t<F>>>(std::forward<F>(body));
    options.name = name;
    options.inputs = inputs.data();
    options.input_count = inputs.size();
    options.body = detail::function_body::entry;
    options.user = static_cast<detail::function_body *>(owned.get());
    rondo_function *made = nullptr;
    const rondo_status status = rondo_function_create(tree.get(), &options, &made);
    return detail::finish(status, [&] { return function(made, std::move(owned)); });
  }
#ifndef RONDO_NO_EXCEPTIONS
  template <class F>
  function(const tree &tree, const char *name, span<const std::uint32_t> inputs, F &&body,
           const rondo_function_options &options = {})
      : function(create(tree, name, inputs, std::forward<F>(body), options)) {}
#endif
  function() = default;
  function(function &&) = default;
  function &operator=(function &&other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.owner::release();
      body_ = std::move(other.body_);
    }
    return *this;
  }
  ~function() { reset(); }

  /* A function that could not be destroyed still has its body. */
  void reset() noexcept {
    if (get() != nullptr && rondo_function_destroy(get()) != RONDO_OK) (void)body_.release();
    owner::release();
    body_ = nullptr;
  }
  rondo_function *release() noexcept {
    (void)body_.release();
    return owner::release();
  }

  /* Calls the function and returns its first `count` outputs. What the body throws comes out of here. */
  template <std::size_t count>
  returns<std::array<buffer, count>> call(const stream_ref &stream, span<const rondo_input> inputs) const {
    rondo_buffer *made[count + 1] = {};
    const rondo_status status = run(
        [&] { return rondo_function_call(get(), stream.get(), inputs.data(), inputs.size(), made, count); }, stream);
    return detail::finish(status, [&] {
      std::array<buffer, count> outputs;
      rondo_buffer *const *next = made;
      for (buffer &output : outputs) output = buffer(*next++);
      return outputs;
    });
  }
  /* The same for one output. */
  returns<buffer> operator()(const stream_ref &stream, span<const rondo_input> inputs) const {
    rondo_buffer *made = nullptr;
    const rondo_status status =
        run([&] { return rondo_function_call(get(), stream.get(), inputs.data(), inputs.size(), &made, 1); }, stream);
    return detail::finish(status, [&] { return buffer(made); });
  }

 private:
  function(rondo_function *made, std::unique_ptr<detail::function_body> body) noexcept
      : owner(made), body_(std::move(body)) {}

  template <class Call>
  rondo_status run(Call &&enqueue, const stream_ref &stream) const {
    detail::tree_frame frame(body_.get());
    const rondo_status status = enqueue();
    return status == RONDO_OK ? RONDO_OK : frame.passed(status, stream.device().get());
  }

  std::unique_ptr<detail::function_body> body_;
};

/* Regions ---------------------------------------------------------------------------------------------------------- */

/* The key of a region whose recordings depend only on its inputs. */
struct no_key {};

/* A region (<rondo/region.h>), whose recordings differ by a value of the type Key: region<shape>. Its bytes are
 * compared, so it must have no padding. Destroy it before the tree. */
template <class Key = no_key>
class region : public handle<rondo_region, rondo_region_destroy> {
  static_assert(std::is_empty_v<Key> || std::has_unique_object_representations_v<Key> || std::is_floating_point_v<Key>,
                "the bytes of a key are compared: it must have no padding and no addresses to compare by content");

 public:
  using region::owner::owner;
  /* `inputs`: the kinds, such as {RONDO_INPUT_MOVING}. Name, inputs and key_bytes of `options` are ignored. */
  static returns<region> create(const tree &tree, const char *name, span<const std::uint32_t> inputs,
                                rondo_region_options options = {}) {
    options.name = name;
    options.inputs = inputs.data();
    options.input_count = inputs.size();
    options.key_bytes = key_bytes;
    return make<region>(rondo_region_create, tree.get(), &options);
  }
#ifndef RONDO_NO_EXCEPTIONS
  region(const tree &tree, const char *name, span<const std::uint32_t> inputs, const rondo_region_options &options = {})
      : region(create(tree, name, inputs, options)) {}
#endif

  /* Begins the region, calls `code` with a rondo::call & as often as it has to run (never, once, or again eagerly), and
   * ends the region. Returns the first `count` outputs. What the code throws comes out of here; a capture is dropped.
   * If the capture had died before, the code runs again instead. `where` says in messages where the region was begun.
   */
  template <std::size_t count = 0, class F>
  returns<std::array<buffer, count>> run(const stream_ref &stream, const Key &key, span<const rondo_input> inputs,
                                         F &&code, const char *where = __builtin_FUNCTION()) const {
    rondo_buffer *made[count + 1] = {};
    rondo_region_arguments arguments = {};
    arguments.key = key_bytes == 0 ? nullptr : static_cast<const void *>(&key);
    arguments.key_bytes = key_bytes;
    arguments.inputs = inputs.data();
    arguments.input_count = inputs.size();
    arguments.outputs = count == 0 ? nullptr : made;
    arguments.output_count = count;
    rondo_call *running = nullptr;
    rondo_status status = rondo_region_begin_at(get(), stream.get(), &arguments, where, &running);
    if (running != nullptr)
      status = run_code(stream, running, code);
    else
      status = detail::after_wait(status, stream.device().get());
    return detail::finish(status, [&] {
      std::array<buffer, count> outputs;
      rondo_buffer *const *next = made;
      for (buffer &output : outputs) output = buffer(*next++);
      return outputs;
    });
  }

  returns<rondo_region_info> info() const {
    rondo_region_info info = {};
    const rondo_status status = rondo_region_get_info(get(), &info);
    return detail::finish(status, [&] { return info; });
  }

 private:
  static constexpr std::size_t key_bytes = std::is_empty_v<Key> ? 0 : sizeof(Key);

  template <class F>
  rondo_status run_code(const stream_ref &stream, rondo_call *running, F &code) const {
    detail::tree_frame frame(nullptr);
    const detail::on_exit<rondo_region, void> close(rondo_region_abandon, get()); /* nothing, if it has ended */
    rondo_status status = RONDO_OK;
    while (running != nullptr) {
      const rondo_status done = frame.run_body(running, [&] {
        call call(running);
        return detail::status_of_call(code, call);
      });
      status = rondo_region_end(get(), stream.get(), done, &running);
    }
    return frame.passed(status, stream.device().get());
  }
};

}  // namespace exceptions or results
}  // namespace rondo

#undef RONDO_RAISE

#endif
