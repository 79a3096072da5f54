// From the fourth step on, our own code allocates nothing on the step's threads, libraries allocate no block of 4 KiB
// or more there, and the process does not grow. A whole run of the cpu backend in this process, with the malloc hook
// below.
//
// The step's threads are the loop's thread and its compute team. An allocation is attributed to the innermost of our
// code, oneDNN and OpenMP on its stack: what fmt or libstdc++ allocate for us is ours. Saves and evaluations are not
// steps: there are none between the fourth step and the last.

#include <gtest/gtest.h>

#include "execute/train/stage_watch.h"
#include "ground/base/clock.h"
#include "ground/process/core_wait.h"
#include "ground/process/machine.h"
#include "laws/process_job.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"
#include "operate/run/rank_threads.h"
#include "operate/run/train_run.h"

#if !defined(SYSTOLE_HAS_CPU) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SYSTOLE_NO_HOOK
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SYSTOLE_NO_HOOK
#endif
#endif

#ifndef SYSTOLE_NO_HOOK
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

namespace {

// The address range of a loaded object's code.
struct Extent {
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};
struct Objects {
  Extent self, libdnnl, libgomp;
};
Objects objects;

int find_object(dl_phdr_info* info, std::size_t, void*) {
  const std::string_view name = info->dlpi_name;
  Extent* extent = name.empty() && objects.self.end == 0   ? &objects.self
                   : name.find("/libdnnl.so") != name.npos ? &objects.libdnnl
                   : name.find("/libgomp.so") != name.npos ? &objects.libgomp
                                                           : nullptr;
  if (extent == nullptr) return 0;
  for (int h = 0; h < info->dlpi_phnum; ++h) {
    const auto& header = info->dlpi_phdr[h];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    *extent = {info->dlpi_addr + header.p_vaddr, info->dlpi_addr + header.p_vaddr + header.p_memsz};
  }
  return 0;
}

// Violations are kept with their stack. Other allocations are counted.
constexpr int kFrames = 24, kOffences = 64;
struct Offence {
  std::size_t bytes = 0;
  int frames = 0;
  std::array<void*, kFrames> stack{};
};
std::array<Offence, kOffences> offences;
std::atomic<int> ours{0}, large{0}, small{0}, elsewhere{0};
std::atomic<bool> watching{false};
thread_local bool is_loop = false, inside = false;

[[gnu::noinline]] void look_at(std::size_t bytes) {
  Offence seen;
  seen.bytes = bytes;
  seen.frames = backtrace(seen.stack.data(), kFrames);
  bool of_step = is_loop, is_ours = false, owned = false;
  for (int i = 3; i < seen.frames; ++i) {  // skips this hook's frames: look_at, record, malloc
    const void* at = seen.stack[static_cast<std::size_t>(i)];
    of_step |= objects.libgomp.holds(at);
    if (owned || !(objects.self.holds(at) || objects.libdnnl.holds(at) || objects.libgomp.holds(at))) continue;
    owned = true;
    is_ours = objects.self.holds(at);
  }
  if (!of_step) {
    ++elsewhere;
  } else if (is_ours || bytes >= 4096) {
    const int i = ours + large;
    ++(is_ours ? ours : large);
    if (i < kOffences) offences[static_cast<std::size_t>(i)] = seen;
  } else {
    ++small;
  }
}

[[gnu::noinline]] void record(std::size_t bytes) {
  if (!watching.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  look_at(bytes);
  inside = false;
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  record(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  record(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* before, std::size_t bytes) {
  record(bytes);
  return __libc_realloc(before, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  record(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  record(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  record(bytes);
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

namespace systole::laws {
namespace {

#ifndef SYSTOLE_NO_HOOK
std::string to_text(const Offence& offence) {
  std::string text = fmt::format("{} bytes by", offence.bytes);
  for (int i = 3; i < std::min(offence.frames, 12); ++i) {
    void* at = offence.stack[static_cast<std::size_t>(i)];
    Dl_info info{};
    dladdr(at, &info);
    const auto offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    text += fmt::format("\n  {}+{:#x} {}", info.dli_fname != nullptr ? info.dli_fname : "?", offset,
                        info.dli_sname != nullptr ? info.dli_sname : "");
  }
  return text;
}

// Call once before watching: backtrace loads its library at the first call.
void prepare_hook() {
  std::array<void*, kFrames> warm{};
  backtrace(warm.data(), kFrames);
  dl_iterate_phdr(find_object, nullptr);
  ours = large = small = elsewhere = 0;
}
#endif

#ifndef SYSTOLE_NO_HOOK
// Runs the workload with these settings and watches from the fourth step to the last; with several ranks, which are
// threads, watches rank 0.
void expect_nothing(std::vector<std::string> sets, std::int64_t steps) {
  const Workshop shop;
  const std::unique_ptr<Clock> clock = real_clock();
  WorkloadOptions options;
  options.sets = std::move(sets);
  options.sets.insert(options.sets.end(),
                      {fmt::format("train.steps={}", steps), "checkpoint.every=never",
                       "data.train.files=" + shop.path("text.txt"), "data.folder=" + shop.path("data")});
  const Workload workload = for_ranks(load_workload(shop.path("job.yaml"), options).value());
  PrepareOptions preparing;
  PlannedRun job = prepare(workload, preparing, *clock).value();
  RunFolder folder = claim_folder(shop.path("run"), ResumeMode::anew).value();
  const std::unique_ptr<EventFile> events =
      EventFile::open(*folder.store, next_event_file(*folder.store).value()).value();
  TimeLedger ledger(*clock, Category::startup);

  prepare_hook();
  std::int64_t step = 0;
  Bytes at_ten, late;
  RunRequest request;
  request.folder = folder.path;
  request.hooks.on_phase = [&](const char* phase) {
    if (std::string_view(phase) != "read") return;
    ++step;
    is_loop = true;
    if (step == 10) at_ten = resident_memory();
    if (step == steps) late = resident_memory();
    if (step == 3) dl_iterate_phdr(find_object, nullptr);  // oneDNN is loaded by now
    watching = step >= 4 && step < steps;
  };
  const bool alone = job.job.program->mesh.trivial();
  const Result<TrainOutcome> outcome = alone ? run_job(job, folder, request, *clock, ledger, *events)
                                             : run_in_threads(job, preparing, folder, request, *clock, ledger, *events);
  watching = is_loop = false;
  ASSERT_TRUE(outcome.ok()) << to_string(outcome.error());
  ASSERT_EQ(step, steps);

  for (int i = 0; i < std::min(ours + large, 10); ++i) ADD_FAILURE() << to_text(offences[static_cast<std::size_t>(i)]);
  EXPECT_EQ(ours.load(), 0);
  EXPECT_EQ(large.load(), 0);
  if (alone) {
    EXPECT_LE(std::abs((late - at_ten).count()), kMiB.count())
        << "grew from " << to_string(at_ten) << " to " << to_string(late);
  }
  note(fmt::format(
      "steps 4 to {}: {} allocations of ours, {} of libraries below 4 KiB, {} of 4 KiB or more; {} by other threads; "
      "resident {} at step 10, {} at step {}",
      steps - 1, ours.load(), small.load(), large.load(), elsewhere.load(), with_commas(at_ten.count()),
      with_commas(late.count()), steps));
}
#endif

TEST(NothingIsAllocated, from_the_fourth_step_on) {
#ifdef SYSTOLE_NO_HOOK
  GTEST_SKIP() << "needs the cpu backend and a malloc of its own: runs in the release build";
#else
  expect_nothing({}, is_long() ? 1000 : 120);
#endif
}

// Its collectives allocate nothing either, including overlapped ones.
TEST(NothingIsAllocated, by_a_rank_of_several) {
#ifdef SYSTOLE_NO_HOOK
  GTEST_SKIP() << "needs the cpu backend and a malloc of its own: runs in the release build";
#else
  expect_nothing({"mesh={fsdp: 2}", "train.exact=false"}, is_long() ? 300 : 60);
  expect_nothing({"mesh={data: 2}", "train.exact=false"}, is_long() ? 300 : 60);
#endif
}

// What one of several ranks adds to a step: its stages, its collectives and their waits, in its flight log.
TEST(NothingIsAllocated, by_watching_a_rank) {
#ifdef SYSTOLE_NO_HOOK
  GTEST_SKIP() << "needs the cpu backend and a malloc of its own: runs in the release build";
#else
  const std::unique_ptr<Clock> clock = real_clock();
  FlightLog log(FlightIdentity{1, 0, 2, 1, 1, clock->now()});
  const CoreWait cores;
  StageWatch stages(log, *clock, [&cores] { return cores.so_far(); });
  TimeLedger ledger(*clock, Category::startup);
  ledger.tell(&stages);
  const CollectiveCall call{CollectiveKind::all_reduce, "data", 2, DType::f32, {64}};
  const auto step = [&](std::uint32_t number) {
    stages.step_began(number);
    ledger.enter(Category::data_wait);
    stages.function("forward");
    ledger.enter(Category::compute);
    ledger.enter(Category::reduce);
    const ObservedCollective seen{&call, number};
    stages.begin(seen);
    stages.enter_collectives();
    stages.waits(1, false, {number, 0, 0, 0});
    stages.goes_on();
    stages.end(seen, true, Bytes(256));
    stages.leave_collectives(true);
    ledger.enter(Category::logging);
    stages.step_ended(number);
  };
  step(1);
  prepare_hook();
  is_loop = watching = true;
  for (std::uint32_t number = 2; number < 100; ++number) step(number);
  watching = false;
  for (int i = 0; i < std::min(ours + large, 10); ++i) ADD_FAILURE() << to_text(offences[static_cast<std::size_t>(i)]);
  EXPECT_EQ(ours + large, 0);
  EXPECT_EQ(log.read().steps, 99);
  EXPECT_EQ(log.read().sites.at(0).runs, 99);
#endif
}

// The hook works: otherwise a hook that is never called would satisfy the law.
TEST(NothingIsAllocated, the_hook_sees_an_allocation) {
#ifdef SYSTOLE_NO_HOOK
  GTEST_SKIP() << "needs the cpu backend and a malloc of its own: runs in the release build";
#else
  prepare_hook();
  is_loop = watching = true;
  auto made = std::make_unique<std::vector<char> >();
  made->reserve(5000);
  watching = false;
  EXPECT_GE(ours.load(), 2);
  std::thread([] {
    watching = true;
    const auto other = std::make_unique<int>(1);
    watching = false;
    EXPECT_EQ(*other, 1);
  }).join();
  EXPECT_EQ(elsewhere.load(), 1);
#endif
}

}  // namespace
}  // namespace systole::laws
