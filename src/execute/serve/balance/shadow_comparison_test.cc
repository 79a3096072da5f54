#include "execute/serve/balance/shadow_comparison.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(GeneratedText, is_that_of_all_choices_and_events_as_json_writes_it) {
  EXPECT_EQ(generated_text(R"({"id": "a", "choices": [{"text": "one \"text\": two", "index": 0}, {"text":"!"}]})"),
            R"(one \"text\": two!)");
  EXPECT_EQ(generated_text("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"a\\\\\"}}]}\n\n"
                           "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n"),
            "a\\\\b");
  EXPECT_EQ(generated_text(R"({"content": null, "text": 5, "content" : ["text"], "context": "no"})"), std::nullopt);
  EXPECT_EQ(generated_text(R"({"text": ""})"), "");
}

TEST(GeneratedText, ends_where_the_answer_was_cut) {
  for (const char* cut :
       {"", "\"", "\"text", "\"text\"", "\"text\":", "\"text\": \"", "\"text\": \"a", "\"text\":\"a\\"})
    EXPECT_EQ(generated_text(cut), std::nullopt) << cut;
}

}  // namespace
}  // namespace systole
