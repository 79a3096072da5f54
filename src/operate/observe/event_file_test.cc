#include "operate/observe/event_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "ground/store/testing/faulty.h"
#include "operate/observe/testing/tiny_run.h"

namespace systole {
namespace {

std::vector<Event> read_back(Store& store, const std::string& path) {
  return parse_events(read_text(store, path).value(), path).value();
}

TEST(EventFile, without_an_event_leaves_none) {
  const std::unique_ptr<Store> store = make_memory_store();
  EXPECT_TRUE(EventFile::open(*store, "000.jsonl").value()->close().ok());
  EXPECT_FALSE(store->exists("000.jsonl").value());
  { const auto dropped = EventFile::open(*store, "000.jsonl").value(); }
  EXPECT_FALSE(store->exists("000.jsonl").value());
}

TEST(EventFile, flushed_events_are_in_the_file_in_order) {
  const auto store = make_memory_store();
  const auto file = EventFile::open(*store, "e.jsonl").value();
  std::vector<Event> added{opened_event("r", "2026")};
  for (int i = 1; i <= 100; ++i) added.push_back(step_event(i, 1.0 / i));
  for (const Event& event : added) file->add(event);
  ASSERT_TRUE(file->flush().ok());
  EXPECT_EQ(read_back(*store, "e.jsonl"), added);
}

TEST(EventFile, a_full_ring_makes_the_caller_wait_and_loses_nothing) {
  const auto store = make_memory_store();
  {
    const auto file = EventFile::open(*store, "e.jsonl", {.capacity = 3, .write_every = Seconds(60.0)}).value();
    file->add(opened_event("r", "2026"));
    for (int i = 1; i <= 50; ++i) file->add(step_event(i, i));
  }
  EXPECT_EQ(read_back(*store, "e.jsonl").size(), 51u);
}

TEST(EventFile, is_written_without_flush_within_its_time) {
  const auto store = make_memory_store();
  const auto file = EventFile::open(*store, "e.jsonl", {.write_every = Seconds(0.01)}).value();
  file->add(opened_event("r", "2026"));
  for (int i = 0; i < 1000 && store->size("e.jsonl").value() == Bytes(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(read_back(*store, "e.jsonl").size(), 1u);
}

TEST(EventFile, the_listener_hears_each_event_once_on_another_thread) {
  const auto store = make_memory_store();
  std::vector<Event> heard;
  bool elsewhere = true;
  const auto here = std::this_thread::get_id();
  const auto file = EventFile::open(*store, "e.jsonl", {.listener = [&](const Event& event) {
                      heard.push_back(event);
                      elsewhere = elsewhere && std::this_thread::get_id() != here;
                    }}).value();
  const std::vector<Event> added{opened_event("r", "2026"), step_event(1, 2), step_event(2, 1)};
  for (const Event& event : added) file->add(event);
  ASSERT_TRUE(file->flush().ok());
  EXPECT_EQ(heard, added);
  EXPECT_TRUE(elsewhere);
}

TEST(EventFile, a_full_disk_surfaces_at_flush_and_stays) {
  FaultyStore store;
  store.inject(Fault::fails_from(2, ENOSPC));  // the first append
  const auto file = EventFile::open(store, "e.jsonl", {.write_every = Seconds(60.0)}).value();
  file->add(opened_event("r", "2026"));
  const Status flushed = file->flush();
  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().kind, ErrorKind::no_space);
  file->add(step_event(1, 1));
  EXPECT_FALSE(file->flush().ok());
  ASSERT_TRUE(file->failed().has_value());
  EXPECT_EQ(file->failed()->kind, ErrorKind::no_space);
}

TEST(EventFile, a_full_disk_is_told_once_where_nobody_waits) {
  FaultyStore store;
  store.inject(Fault::fails_from(2, ENOSPC));  // the first append
  std::vector<ErrorKind> told;
  const auto file = EventFile::open(store, "e.jsonl",
                                    {.capacity = 2,
                                     .write_every = Seconds(60.0),
                                     .on_failure = [&](const Error& why) { told.push_back(why.kind); }})
                        .value();
  for (int i = 1; i <= 20; ++i) file->add(step_event(i, i));
  EXPECT_FALSE(file->close().ok());
  EXPECT_EQ(told, std::vector<ErrorKind>{ErrorKind::no_space});
}

TEST(EventFile, what_cannot_be_made_safe_surfaces_at_close) {
  FaultyStore store;
  store.inject(Fault::fails(3, ENOSPC));  // after the creation and the first append: the sync
  const auto file = EventFile::open(store, "e.jsonl", {.write_every = Seconds(60.0)}).value();
  file->add(opened_event("r", "2026"));
  ASSERT_TRUE(file->flush().ok());
  const Status closed = file->close();
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().kind, ErrorKind::no_space);
  EXPECT_FALSE(file->close().ok()) << "a second call forgets";
  file->add(step_event(1, 1));  // dropped
}

TEST(EventFile, each_process_has_a_file_of_its_own) {
  const auto store = make_memory_store();
  EXPECT_EQ(next_event_file(*store).value(), "events/000.jsonl");
  write_events(*store, "events/000.jsonl", {opened_event("r", "1")});
  write_events(*store, "events/011.jsonl", {opened_event("r", "2")});
  EXPECT_EQ(next_event_file(*store).value(), "events/012.jsonl");
  EXPECT_EQ(list_event_files(*store).value(), (std::vector<std::string>{"events/000.jsonl", "events/011.jsonl"}));
}

}  // namespace
}  // namespace systole
