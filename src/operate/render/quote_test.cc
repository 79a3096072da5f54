// The target's own parser returns the user's text unchanged, and executes none of it.
#include "operate/render/quote.h"

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "ground/process/capture.h"
#include "operate/render/names.h"
#include "operate/render/testing/hostile.h"

namespace systole {
namespace {

TEST(Quote, a_shell_gives_every_word_back) {
  for (const char* shell : {"sh", "bash"}) {
    for (const std::string& text : hostile_texts()) {
      Command command;
      command.argv = {shell, "-c", "printf %s " + shell_word(text)};
      const Captured said = run_captured(command, {}).value();
      EXPECT_EQ(said.exit.code, 0) << text;
      EXPECT_EQ(said.out, text) << shell;
      EXPECT_EQ(said.err, "") << shell;
    }
  }
}

TEST(Quote, yaml_gives_every_text_back) {
  for (const std::string& text : hostile_texts()) {
    const Node map = Node::map({{"value", text}, {"after", 1}});
    EXPECT_EQ(parse_yaml(to_yaml(map), "f").value(), map) << to_yaml(map);
  }
}

TEST(Quote, a_comment_stays_on_its_line) {
  for (const std::string& text : hostile_texts())
    EXPECT_EQ(comment_text(text).find_first_of(std::string_view("\n\r\0", 3)), std::string::npos);
}

TEST(Quote, a_batch_script_takes_no_word_that_could_end_its_line_or_become_two) {
  for (const char* good : {"main", "a,b", "a100&ib", "n[0-3]", "1-4", "B:TERM@60", "%A_%a"})
    EXPECT_EQ(sbatch_value("x", good).value(), good);
  for (const char* bad : {"", "-x", "a b", "a\n#SBATCH --uid=0", "a\"b", "a'b", "a#b", "a;b", "$(x)", "a\\b", "\t"}) {
    const Result<std::string> refused = sbatch_value("slurm: --qos", bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_TRUE(refused.error().message.starts_with("slurm: --qos: ")) << refused.error().message;
    EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  }
}

TEST(Names, are_what_is_left_of_a_label) {
  EXPECT_EQ(dns_label("GPT-2 124M!", 63, "a job").value(), "gpt-2-124m");
  EXPECT_EQ(dns_label("7b", 63, "a job").value(), "w7b");
  EXPECT_EQ(dns_label("--a--", 63, "a job").value(), "a");
  for (const std::string& text : hostile_texts()) {
    const Result<std::string> name = dns_label(text, 30, "a job");
    if (!name.ok()) continue;
    EXPECT_EQ(name->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << *name;
    EXPECT_LE(name->size(), 30u);
    EXPECT_NE(name->front(), '-');
    EXPECT_NE(name->back(), '-');
  }
  const Result<std::string> much = dns_label(std::string(64, 'x'), 63, "a job");
  ASSERT_FALSE(much.ok());
  EXPECT_TRUE(much.error().message.ends_with("has 64 characters; a job takes 63 here")) << much.error().message;
}

TEST(Names, of_hosts_and_of_labels_have_their_characters_alone) {
  EXPECT_TRUE(is_host_name("chat.example.org") && is_host_name("1"));
  for (const char* bad : {"", "a-", "a.", "-a", ".a", "Chat.example.org", "a/b", "*.example.org", "a_b"})
    EXPECT_FALSE(is_host_name(bad)) << bad;
  EXPECT_TRUE(is_host_name(std::string(253, 'a')));
  EXPECT_FALSE(is_host_name(std::string(254, 'a')));
  EXPECT_TRUE(is_label_name("systole.test/pods") && is_label_name("a_B"));
  EXPECT_FALSE(is_label_name("/a") || is_label_name("A.b/c") || is_label_name("a/") || is_label_name("a/b/c"));
}

TEST(Names, an_image_is_one_image_for_ever_or_at_least_named) {
  const std::string digest(64, 'a');
  EXPECT_TRUE(check_image("r.io:5000/a/b@sha256:" + digest).ok());
  EXPECT_TRUE(check_image("a/b:1.2").ok());
  for (const char* bad : {"", "a/b", "a:latest", "r.io:5000/a", "a@sha256:12", "a b:1", "-a:1", "a:1\n", "$(x):1"})
    EXPECT_FALSE(check_image(bad).ok()) << bad;
}

}  // namespace
}  // namespace systole
