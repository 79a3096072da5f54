#include "execute/checkpoint/async_save.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <mutex>

#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/store/testing/faulty.h"

namespace systole::checkpoint {
namespace {

Bytes buffer_for_tiny() {
  const auto state = tiny_state(0);
  return snapshot_bytes(tiny_request(0, state).tensors);
}

Status begin_tiny(AsyncSaver& saver, std::int64_t step) {
  auto state = tiny_state(step);
  const Status begun = saver.begin(tiny_request(step, state));
  for (TinyTensor& tensor : state)
    std::fill(tensor.value.bytes().begin(), tensor.value.bytes().end(), std::byte{0xee});  // training goes on
  return begun;
}

TEST(AsyncSave, SavesTheSnapshotWhileTheStateGoesOn) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  AsyncSaver saver(folder, tiny_options(), buffer_for_tiny());
  EXPECT_FALSE(saver.poll().value());
  for (std::int64_t step : {10, 20, 30}) {
    ASSERT_TRUE(begin_tiny(saver, step));
    const auto report = saver.wait();
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_EQ(report.value()->step, step);
    EXPECT_FALSE(saver.wait().value()) << "told once";
    EXPECT_EQ(verify_tiny(open_newest(folder)->checkpoint), "");
  }
  EXPECT_EQ(list_steps(folder).value(), (std::vector<std::int64_t>{20, 30}));
}

TEST(AsyncSave, BeginDoesNotWaitForTheDiskAndOneSaveIsInFlight) {
  auto store = make_memory_store();
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  SaveOptions options = tiny_options();
  options.on_phase = [opened](SavePhase phase, bool begins) {
    if (phase == SavePhase::write && begins) opened.wait();
  };
  const Folder folder{objects_in(*store), "c"};
  AsyncSaver saver(folder, options, buffer_for_tiny());
  ASSERT_TRUE(begin_tiny(saver, 10));
  EXPECT_TRUE(saver.in_flight());
  EXPECT_FALSE(saver.poll().value());
  EXPECT_EQ(begin_tiny(saver, 20).error().kind, ErrorKind::busy);
  gate.set_value();
  EXPECT_EQ(saver.wait().value()->step, 10);
  EXPECT_FALSE(saver.in_flight());
  EXPECT_EQ(verify_tiny(open_newest(folder)->checkpoint), "");
}

TEST(AsyncSave, ReportsThePhasesInOrder) {
  auto store = make_memory_store();
  std::mutex mutex;
  std::vector<std::string> seen;
  SaveOptions options = tiny_options();
  options.on_phase = [&](SavePhase phase, bool begins) {
    const std::scoped_lock lock(mutex);
    seen.push_back(fmt::format("{}{}", begins ? "+" : "-", name_of(phase)));
  };
  AsyncSaver saver({objects_in(*store), "c"}, options, buffer_for_tiny());
  ASSERT_TRUE(begin_tiny(saver, 10));
  ASSERT_TRUE(saver.wait());
  EXPECT_EQ(seen, (std::vector<std::string>{"+snapshot", "-snapshot", "+write", "-write", "+commit", "-commit",
                                            "+sweep", "-sweep"}));
}

TEST(AsyncSave, AFailureSurfacesAtTheNextCallOnce) {
  FaultyStore store;
  const Folder folder{objects_in(store), "c"};
  AsyncSaver saver(folder, tiny_options(), buffer_for_tiny());
  store.inject(Fault::fails(9, ENOSPC));
  ASSERT_TRUE(begin_tiny(saver, 10));
  while (saver.in_flight()) std::this_thread::yield();
  EXPECT_EQ(begin_tiny(saver, 20).error().kind, ErrorKind::no_space);
  EXPECT_EQ(open_newest(folder).error().kind, ErrorKind::not_found) << "nothing was started by the call that told it";
  store.clear_faults();
  ASSERT_TRUE(begin_tiny(saver, 20));
  EXPECT_EQ(saver.wait().value()->step, 20);

  store.inject(Fault::fails_from(store.changing_calls() + 3, EIO));
  ASSERT_TRUE(begin_tiny(saver, 30));
  EXPECT_EQ(saver.wait().error().kind, ErrorKind::io);
  EXPECT_FALSE(saver.wait().value());
  store.clear_faults();
  EXPECT_EQ(open_newest(folder)->checkpoint.manifest().step, 20);
}

TEST(AsyncSave, ExceptionsOnTheThreadBecomeItsError) {
  FaultyStore store;
  AsyncSaver saver({objects_in(store), "c"}, tiny_options(), buffer_for_tiny());
  store.inject(Fault::dies_before(5));
  ASSERT_TRUE(begin_tiny(saver, 10));
  EXPECT_EQ(saver.wait().error().kind, ErrorKind::internal);
}

TEST(AsyncSave, TheBufferIsWhatWasPlanned) {
  auto store = make_memory_store();
  AsyncSaver saver({objects_in(*store), "c"}, tiny_options(), buffer_for_tiny() - Bytes(1));
  EXPECT_EQ(begin_tiny(saver, 10).error().kind, ErrorKind::does_not_fit);
  EXPECT_FALSE(saver.in_flight());
}

TEST(AsyncSave, InPlaceTakesTheProgramsOwnSnapshot) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  AsyncSaver saver(folder, tiny_options(), Bytes(0));
  const auto state = tiny_state(10);
  ASSERT_TRUE(saver.begin_in_place(tiny_request(10, state)));
  ASSERT_TRUE(saver.wait().value());
  EXPECT_EQ(verify_tiny(open_newest(folder)->checkpoint), "");
}

TEST(AsyncSave, DestroyingItWaits) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  {
    AsyncSaver saver(folder, tiny_options(), buffer_for_tiny());
    ASSERT_TRUE(begin_tiny(saver, 10));
  }
  EXPECT_EQ(verify_tiny(open_newest(folder)->checkpoint), "");
}

}  // namespace
}  // namespace systole::checkpoint
