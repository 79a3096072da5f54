// Every preset has the number of parameters that was published for its model.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "describe/models/list.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

std::string file_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(std::string(SYSTOLE_SOURCE_DIR) + "/" + path).rdbuf();
  return text.str();
}

std::unique_ptr<const Model> model_of(const std::string& preset) {
  const std::string text = "systole: 1\nname: x\nmodel: { preset: " + preset +
                           " }\ndata: { train: { files: a }, tokenizer: { vocabulary: 300 } }\n"
                           "train: { batch: 1, steps: 1, optimizer: { rate: 1 } }\n";
  return make_model(read_workload(text, "job.yaml").value().model);
}

struct Published {
  const char* preset;
  std::int64_t parameters;
};

constexpr Published kPublished[] = {
    // Counted in the released weights (github.com/openai/gpt-2); table 2 of the paper wrongly gives 117M and so on.
    {"gpt2-124m", 124'439'808},
    {"gpt2-355m", 354'823'168},
    {"gpt2-774m", 774'030'080},
    {"gpt2-1558m", 1'557'611'200},
    // arXiv:2005.14165 only says 175.0 billion. This is 12 L d² (1 + 13 / 12 d) + (V + T + 2) d, with L 96, d 12,288,
    // V 50,257, T 2,048, the formula of arXiv:2104.04473, equation 2, with its final norm.
    {"gpt3-175b", 174'604'259'328},
    // NumParams of mosaicml/llm-foundry, scripts/train/benchmarking/README.md, at 2,048 tokens.
    {"mpt-125m", 125'311'488},
    {"mpt-350m", 355'985'408},
    {"mpt-760m", 760'470'528},
    {"mpt-1b", 1'315'950'592},
    {"mpt-3b", 2'651'837'440},
    {"mpt-7b", 6'658'859'008},
    {"mpt-13b", 12'853'954'560},
    {"mpt-30b", 29'975'214'080},
    {"mpt-70b", 64'862'437'376},
    // Elements of the released safetensors, as given on huggingface.co (6.74B, 13B, 69B, 33.7B, …); a tied head counts
    // once.
    {"tinyllama-1.1b", 1'100'048'384},
    {"llama2-7b", 6'738'415'616},
    {"llama2-13b", 13'015'864'320},
    {"llama2-70b", 68'976'648'192},
    {"codellama-34b", 33'743'970'304},
    {"llama3-8b", 8'030'261'248},
    {"llama3-70b", 70'553'706'496},
    {"llama3.1-8b", 8'030'261'248},
    {"llama3.1-70b", 70'553'706'496},
    {"llama3.1-405b", 405'853'388'800},
    {"llama3.2-1b", 1'235'814'400},
    {"llama3.2-3b", 3'212'749'824},
    {"mistral-7b", 7'241'732'096},
    {"mixtral-8x7b", 46'702'792'704},
    {"mixtral-8x22b", 140'620'634'112},
    {"qwen3-8b", 8'190'735'360},
    {"qwen3-32b", 32'762'123'264},
    {"qwen3-30b-a3b", 30'532'122'624},
    {"qwen3-235b-a22b", 235'093'634'560},
    {"deepseek-v2-lite", 15'706'484'224},
    // Without the multi-token prediction module ("671B"; with it 685B), and without the 58 × 256 biases of routing.
    {"deepseek-v3", 671'026'404'352},
    // As transformers counts BertForMaskedLM: with the head, which shares the embedding, and without the pooler.
    // BertModel, in contrast, has 109,482,240 and 335,141,888 (bert/bert_test.cc).
    {"bert-base", 109'514'298},
    {"bert-large", 335'174'458},
    // As transformers counts T5ForConditionalGeneration with the released configurations.
    {"t5-small", 60'506'624},
    {"t5-base", 222'903'552},
    {"t5-large", 737'668'096},
    {"t5-3b", 2'851'598'336},
    {"t5-11b", 11'307'321'344},
    {"t5-v1.1-small", 76'961'152},
    {"t5-v1.1-base", 247'577'856},
    {"t5-v1.1-large", 783'150'080},
    {"t5-v1.1-3b", 2'849'757'184},
    {"t5-v1.1-11b", 11'135'332'352},
};

// Rounded counts of papers, in billions, of the parameters that the paper counts.
struct Rounded {
  const char* preset;
  bool embedding, norms;
  const char* billions;
};

constexpr Rounded kRounded[] = {
    // arXiv:2204.02311, table 1; it omits the scales of norms, 2.2 million in the largest model.
    {"palm-8b", true, false, "8.63"},
    {"palm-62b", true, false, "62.50"},
    {"palm-540b", true, false, "540.35"},
    // arXiv:2402.16819, section 2: "3.2 billion embedding parameters and 12.5 billion non-embedding parameters".
    {"nemotron4-15b", false, true, "12.5"},
    // arXiv:2406.11704, section 2.1: "9.4 billion embedding parameters and 331.6 billion non-embedding parameters".
    {"nemotron4-340b", false, true, "331.6"},
};

TEST(Presets, have_the_published_numbers_of_parameters) {
  std::set<std::string> listed;
  for (const Published& p : kPublished) {
    EXPECT_EQ(num_parameters(*model_of(p.preset)), p.parameters) << p.preset;
    listed.insert(p.preset);
  }
  for (const Rounded& r : kRounded) {
    const auto model = model_of(r.preset);
    std::int64_t count = num_parameters(*model);
    for (const Parameter& p : model->parameters()) {
      const bool embedding = p.name == "embed.tokens" || p.name == "head", norm = p.name.ends_with(".scale");
      if ((embedding && !r.embedding) || (norm && !r.norms)) count -= p.type.num_elements();
    }
    const std::string text = r.billions;
    const std::size_t digits = text.size() - text.find('.') - 1;
    EXPECT_EQ(fmt::format("{:.{}f}", static_cast<double>(count) / 1e9, digits), text) << r.preset << " " << count;
    listed.insert(r.preset);
  }
  for (const std::string& name : preset_names()) EXPECT_TRUE(listed.contains(name)) << name;
}

TEST(Presets, the_llama_example_is_as_large_as_it_says) {
  const std::string text = file_text("examples/llama-50m.yaml");
  EXPECT_EQ(num_parameters(*make_model(read_workload(text, "llama-50m.yaml").value().model)), 56'369'664);
  EXPECT_NE(text.find("56,369,664"), std::string::npos);
}

TEST(Presets, a_few_nodes_whatever_the_depth) {
  const auto model = model_of("llama3.1-405b");
  EXPECT_LT(model->loss({1, 8192}, true).nodes().size(), 100U);
  EXPECT_EQ(model->context(), 131072);
  EXPECT_STREQ(model->family(), "llama");
}

}  // namespace
}  // namespace systole
