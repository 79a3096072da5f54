#include "operate/cli/data_contamination.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/process/machine.h"
#include "operate/cli/data_cat.h"
#include "operate/cli/printer.h"
#include "operate/run/contamination_here.h"

namespace systole::cli {
namespace {

constexpr std::int64_t kUsualWords = 13;

std::string share(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:.2f}%", whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0);
}

using Row = std::vector<std::string>;

// What is compared with what, in this order: held-out text of each source, then other files.
struct Compared {
  std::vector<ComparedText> looked_for, training;
  std::size_t held_out = 0;  // of them, the first are held out
  std::vector<Contamination> found;

  std::string name(std::size_t i) const {
    if (i >= held_out) return looked_for[i].name;
    return looked_for[i].name.empty() ? "held out" : looked_for[i].name + ", held out";
  }
  bool pairs() const { return training.size() > 1; }
};

Row row_of(const Contamination& c, const Contamination::Shared& shared, const std::string& name,
           const std::string& in) {
  return {name,
          in,
          with_commas(c.documents),
          with_commas(shared.documents),
          share(shared.documents, c.documents),
          with_commas(c.ngrams),
          with_commas(shared.ngrams),
          share(shared.ngrams, c.ngrams)};
}

std::string pairs_table(const Compared& all, int width) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < all.found.size(); ++i) {
    const Contamination& c = all.found[i];
    for (std::size_t t = 0; all.pairs() && t < all.training.size(); ++t)
      rows.push_back(row_of(c, c.with[t], all.name(i), all.training[t].name));
    rows.push_back(row_of(c, c.all, all.name(i), "all"));
  }
  Row head{"", "in training of", "documents>", "with one>", "share>", "runs>", "found>", "share>"};
  if (!all.pairs()) {
    head.erase(head.begin() + 1);
    for (Row& row : rows) row.erase(row.begin() + 1);
  }
  return table(head, rows, width);
}

std::string worst_table(const Compared& all, int width) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < all.found.size(); ++i) {
    for (const Contamination::Worst& w : all.found[i].worst) {
      rows.push_back({share(w.found, w.ngrams), with_commas(w.ngrams), to_string(w.place), to_string(w.there),
                      with_commas(w.found_there)});
    }
  }
  if (rows.empty()) return "";
  return "\nthe documents that share most\n" +
         table({"share>", "runs>", "document", "most of it is in", "runs there>"}, rows, width);
}

std::string text_of(const Compared& all, std::int64_t words, int width) {
  const char* what = all.held_out == all.looked_for.size() ? "held-out text"
                     : all.held_out == 0                   ? "text of these files"
                                                           : "held-out text, and text of these files,";
  std::string text =
      fmt::format("{} that stands in the training text too, in runs of {}\n", what, counted(words, "word")) +
      pairs_table(all, width);
  for (std::size_t i = 0; i < all.found.size(); ++i) {
    if (all.found[i].too_short == 0) continue;
    text +=
        fmt::format("{}: {} of fewer words, not compared\n", all.name(i), counted(all.found[i].too_short, "document"));
  }
  return text + worst_table(all, width);
}

Node node_of(const DocumentPlace& place) {
  return Node::map({{"file", place.file}, {place.is_record ? "record" : "line", place.number}});
}

Node node_of(const Compared& all, std::size_t i) {
  const Contamination& c = all.found[i];
  Node node = Node::map({{"documents", c.documents},
                         {"too_short", c.too_short},
                         {"touched", c.all.documents},
                         {"runs", c.ngrams},
                         {"found", c.all.ngrams}});
  if (!all.looked_for[i].name.empty()) node.set(i < all.held_out ? "source" : "files", all.looked_for[i].name);
  Node with = Node::sequence(), worst = Node::sequence();
  for (std::size_t t = 0; t < all.training.size(); ++t)
    with.push(
        Node::map({{"source", all.training[t].name}, {"touched", c.with[t].documents}, {"found", c.with[t].ngrams}}));
  for (const Contamination::Worst& w : c.worst) {
    Node most = node_of(w.there);
    if (all.pairs()) most.set("source", all.training[w.training].name);
    most.set("found", w.found_there);
    worst.push(node_of(w.place).set("runs", w.ngrams).set("found", w.found).set("most_in", most));
  }
  if (all.pairs()) node.set("with", with);
  return node.set("worst", worst);
}

Node node_of(const Compared& all, std::int64_t words) {
  Node held_out = Node::sequence(), against = Node::sequence();
  for (std::size_t i = 0; i < all.found.size(); ++i) (i < all.held_out ? held_out : against).push(node_of(all, i));
  Node node = Node::map({{"words", words}, {"held_out", held_out}});
  if (all.held_out < all.found.size()) node.set("against", against);
  return node;
}

// The rules of the workload's sources are in its keys, those of other files in options.
std::vector<Contamination> found_in(const Compared& all, const ContaminationOptions& options) {
  Result<std::vector<Contamination>> found = find_contamination(all.looked_for, all.training, options);
  if (found.ok()) return *std::move(found);
  Error why = std::move(found).error();
  for (std::size_t i = all.held_out; i < all.looked_for.size(); ++i) {
    const std::vector<std::string>& files = all.looked_for[i].files.paths;
    if (why.kind != ErrorKind::invalid || std::ranges::find(files, why.where.file) == files.end()) continue;
    if (why.code == ErrorCode::missing_key)
      why = hinted_as("--against-field", all.looked_for[i].options.field, std::move(why));
    else
      why.hint += fmt::format("{}of these files the field is --against-field NAME", why.hint.empty() ? "" : "; ");
    break;
  }
  fail(std::move(why));
}

}  // namespace

void add_contamination_arguments(Subcommand command, ContaminationArguments& arguments) {
  command
      .add_option("--contamination", arguments.words,
                  "also count runs of so many words that held-out and training text share; 13 is usual")
      .check(at_least(1));
  command.add_option("--against", arguments.against,
                     "also look for the text of these files in the training text, such as an evaluation suite's");
  command
      .add_option("--against-field", arguments.field,
                  "the field of their records with the text; by default as in data.train")
      .needs("--against");
}

ContaminationShown contamination_shown(const ContaminationArguments& arguments, const LoadedWorkload& loaded,
                                       Context& context) {
  if (arguments.words == 0 && arguments.against.empty()) return {};
  const std::int64_t words = arguments.words > 0 ? arguments.words : kUsualWords;
  ContaminationTexts texts = contamination_texts(loaded.workload, loaded.source, {arguments.against, arguments.field},
                                                 data_progress(loaded.workload, context))
                                 .value();
  Compared all{std::move(texts.held_out), std::move(texts.training)};
  all.held_out = all.looked_for.size();
  for (ComparedText& text : texts.against) all.looked_for.push_back(std::move(text));
  if (all.looked_for.empty()) {
    fail(
        error(ErrorKind::invalid, "nothing of this text is held out").hinted("name files to look for: --against FILE"));
  }
  ContaminationOptions options;
  options.words = words;
  options.threads = allowed_cores();
  options.progress = [&context](Bytes read) {
    context.out.progress(fmt::format("data: comparing, {} read", to_string(read)));
  };
  all.found = found_in(all, options);
  context.out.end_progress();
  return {text_of(all, words, context.out.width()), node_of(all, words)};
}

}  // namespace systole::cli
