// A recursive-descent parser of the graph text. Malformed or hostile text gives an error with its position, never a
// crash: depth, sizes and value numbers are bounded, and every node goes through its op's `infer`.

#include <charconv>
#include <map>

#include "describe/ir/op.h"
#include "describe/ir/text.h"

namespace systole {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::int64_t kMaxDims = 16;

struct SyntaxError {
  Error error;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& filename) : text_(text), filename_(filename) {}

  Graph parse_all() {
    Graph graph = parse_graph_block(0);
    skip_space();
    if (at_ < text_.size()) refuse("text after the graph");
    return graph;
  }

  Where here() const { return place(token_); }
  Where statement() const { return place(statement_); }

 private:
  Where place(std::size_t at) const {
    Where where{filename_, 1, 1};
    for (std::size_t i = 0; i < std::min(at, text_.size()); ++i) {
      if (text_[i] == '\n') {
        ++where.line;
        where.col = 1;
      } else {
        ++where.col;
      }
    }
    return where;
  }

  [[noreturn]] void refuse(const std::string& message) const {
    throw SyntaxError{Error{ErrorKind::invalid, message, here(), {}, {}}};
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    token_ = at_;
  }

  bool take(std::string_view wanted) {
    skip_space();
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  bool take_word(std::string_view wanted) {
    skip_space();
    const std::size_t start = at_;
    if (word() == wanted) return true;
    at_ = start;
    return false;
  }

  void expect(std::string_view wanted) {
    if (!take(wanted)) refuse(fmt::format("expected '{}'", wanted));
  }

  std::string_view word() {
    skip_space();
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    return text_.substr(start, at_ - start);
  }

  std::string quoted() {
    expect("\"");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_++];
    }
    if (at_ >= text_.size()) refuse("text without its closing quote");
    ++at_;
    return out;
  }

  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc()) refuse("expected an integer");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  double real() {
    skip_space();
    double value = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc()) refuse("expected a number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  Type type() {
    const std::string_view name = word();
    const std::optional<DType> dtype = dtype_named(name);
    if (!dtype) refuse(fmt::format("no element type is named '{}'", name));
    Shape shape;
    std::vector<std::string> names;
    expect("[");
    while (!take("]")) {
      if (!shape.empty()) expect(",");
      skip_space();
      const bool named =
          at_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_');
      names.emplace_back(named ? word() : std::string_view());
      if (named) expect("=");
      const std::int64_t size = integer();
      if (size < 0) refuse("a negative size");
      shape.push_back(size);
      if (static_cast<std::int64_t>(shape.size()) > kMaxDims) refuse(fmt::format("more than {} dims", kMaxDims));
    }
    num_elements(shape);  // throws Failure when it overflows
    return Type(*dtype, std::move(shape), std::move(names));
  }

  Attr attr() {
    skip_space();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '"') return quoted();
    if (take("[")) {
      Ints list;
      while (!take("]")) {
        if (!list.empty()) expect(",");
        list.push_back(integer());
      }
      return list;
    }
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 ||
                                  std::string_view("+-.").find(text_[end]) != std::string_view::npos))
      ++end;
    const std::string_view token = text_.substr(at_, end - at_);
    if (token.find_first_of(".enai") != token.npos) return real();
    return integer();
  }

  Attrs attributes() {
    Attrs attrs;
    if (!take("{")) return attrs;
    while (!take("}")) {
      if (!attrs.empty()) expect(",");
      std::string name(word());
      if (name.empty()) refuse("expected the name of an attribute");
      expect("=");
      attrs.set(std::move(name), attr());
    }
    return attrs;
  }

  Parameter parameter() {
    Parameter p;
    p.name = quoted();
    expect(":");
    p.type = type();
    if (take_word("init")) {
      const std::string_view kind = word();
      if (kind == "zeros")
        p.init.kind = Init::Kind::zeros;
      else if (kind == "ones")
        p.init.kind = Init::Kind::ones;
      else if (kind == "normal")
        p.init.kind = Init::Kind::normal;
      else if (kind == "uniform")
        p.init.kind = Init::Kind::uniform;
      else
        refuse(fmt::format("no initialiser is named '{}'", kind));
      if (take("(")) {
        p.init.scale = real();
        expect(")");
      }
    }
    if (take_word("frozen")) p.trainable = false;
    if (take_word("no_decay")) p.decay = false;
    if (take_word("stage")) p.stage = static_cast<int>(integer());
    return p;
  }

  using Numbers = std::map<std::int64_t, Value>;

  Value value(const Numbers& numbers) {
    expect("%");
    const std::int64_t n = integer();
    const auto found = numbers.find(n);
    if (found == numbers.end()) refuse(fmt::format("%{} is used before it is defined", n));
    return found->second;
  }

  Graph parse_graph_block(int depth) {
    if (depth > kMaxDepth) refuse("regions nested too deeply");
    if (!take_word("graph")) refuse("expected 'graph'");
    Graph graph(quoted());
    Numbers numbers;
    expect("{");
    while (!take_word("return")) read_statement(graph, numbers, depth);
    while (!take("}")) {
      if (!graph.outputs().empty()) expect(",");
      std::string name = quoted();
      graph.output(std::move(name), value(numbers));
    }
    return graph;
  }

  void read_statement(Graph& graph, Numbers& numbers, int depth) {
    struct Defined {
      std::int64_t number;
      std::string name;
    };
    std::vector<Defined> defined;
    skip_space();
    statement_ = at_;
    do {
      expect("%");
      Defined d{integer(), ""};
      skip_space();
      if (at_ < text_.size() && text_[at_] == '"') d.name = quoted();
      if (numbers.count(d.number) != 0) refuse(fmt::format("%{} is defined twice", d.number));
      defined.push_back(std::move(d));
    } while (take(","));
    expect("=");
    const std::vector<Value> results = right_side(graph, numbers, depth);
    if (results.size() != defined.size())
      refuse(fmt::format("{} names for {} results", defined.size(), results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      numbers[defined[i].number] = results[i];
      if (!defined[i].name.empty()) results[i].named(defined[i].name);
    }
  }

  std::vector<Value> right_side(Graph& graph, const Numbers& numbers, int depth) {
    const std::string op(word());
    if (op == "input" || op == "param") {
      Parameter p;
      if (op == "param") {
        p = parameter();
      } else {
        p.name = quoted();
        expect(":");
        p.type = type();
      }
      if (graph.find_input(p.name)) refuse(fmt::format("two inputs are named '{}'", p.name));
      if (!graph.nodes().empty()) refuse("an input after the first node");
      return {op == "param" ? graph.parameter(std::move(p)) : graph.input(p.name, p.type)};
    }
    return node(graph, numbers, op, depth);
  }

  std::vector<Value> node(Graph& graph, const Numbers& numbers, const std::string& op, int depth) {
    const std::size_t start = statement_;
    const OpDef* def = find_op(op);
    if (def == nullptr) refuse(fmt::format("no op is named '{}'", op));
    std::vector<Value> operands;
    expect("(");
    while (!take(")")) {
      if (!operands.empty()) expect(",");
      operands.push_back(value(numbers));
    }
    Attrs attrs = attributes();
    expect(":");
    std::vector<Type> types{type()};
    while (take(",")) types.push_back(type());
    const bool recomputed = take_word("recomputed");
    std::vector<Graph> regions;
    if (take("[")) {
      while (!take("]")) regions.push_back(parse_graph_block(depth + 1));
    }
    token_ = statement_ = start;  // a region has statements of its own
    const std::vector<Value> results = graph.apply(*def, operands, std::move(attrs), std::move(regions));
    graph.last_node().recomputed = recomputed;
    if (results.size() != types.size())
      refuse(fmt::format("'{}' gives {} results, {} are written", op, results.size(), types.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!(results[i].type() == types[i])) {
        refuse(fmt::format("'{}' gives {}, {} is written", op, to_string(results[i].type()), to_string(types[i])));
      }
    }
    return results;
  }

  std::string_view text_;
  const std::string& filename_;
  std::size_t at_ = 0, token_ = 0, statement_ = 0;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text, const std::string& filename) {
  Parser parser(text, filename);
  try {
    return parser.parse_all();
  } catch (SyntaxError& e) { return std::move(e.error); } catch (const Failure& f) {  // an op refused its operands
    Error e = f.error();
    e.kind = ErrorKind::invalid;
    e.where = parser.statement();
    return e;
  }
}

}  // namespace systole
