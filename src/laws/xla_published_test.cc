// Reschedules the steps of data/xla/published.json with the TPU compiler and compares with the recorded results. Only
// in the long form, because a row takes minutes.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ground/base/testing/places.h"
#include "ground/pjrt/places.h"
#include "laws/process_job.h"
#include "predict/prove/published.h"

namespace systole::laws {
namespace {

std::vector<prove::PublishedStep> steps_of(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return prove::read_published(text.str()).value();
}

TEST(XlaPublished, steps_are_scheduled_as_they_were) {
  if (!is_long()) GTEST_SKIP() << "half an hour: SYSTOLE_TEST_LONG=1";
  if (!pjrt::find_plugin("tpu", pjrt::plugins_folder()).ok()) GTEST_SKIP() << "no plugin: tools/xla-plugins tpu";
  const Workshop shop;
  const std::filesystem::path source = SYSTOLE_SOURCE_DIR "/data/xla/published.json", again = shop.path("again.json");
  std::filesystem::copy_file(source, again);
  Command command = shop.command({"--rows", again.string()});
  command.argv.insert(command.argv.begin(), SYSTOLE_SOURCE_DIR "/tools/xla-published");  // which runs the program
  command.env.push_back({"XDG_CACHE_HOME", shop.path("cache")});
  CaptureOptions options;
  options.timeout = Seconds(3600.0);
  const Captured said = run_captured(command, options).value();
  note(said.out);
  EXPECT_EQ(said.exit.code, 0) << said.err;
  const std::vector<prove::PublishedStep> was = steps_of(source), is = steps_of(again);
  ASSERT_EQ(is.size(), was.size());
  for (std::size_t i = 0; i < was.size(); ++i) {
    EXPECT_EQ(is[i].module, was[i].module) << was[i].name << ": another text: tools/xla-published";
    EXPECT_NEAR(is[i].scheduled.total() / was[i].scheduled.total(), 1, 1e-3) << was[i].name << " on " << was[i].slice;
  }
}

}  // namespace
}  // namespace systole::laws
