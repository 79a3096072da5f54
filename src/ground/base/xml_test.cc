#include "ground/base/xml.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(Xml, is_read_as_elements_and_text) {
  const XmlElement root =
      parse_xml(
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a -->"
          "<s3:List xmlns:s3='http://x/' more=\"a > b\"><Name>b &lt;&amp;&#233;&#x1F600;</Name><Empty/>"
          "<Contents><Key>a</Key></Contents><Contents><Key><![CDATA[<b>]]>c</Key ></Contents></s3:List>\n",
          "x")
          .value();
  EXPECT_EQ(root.name, "List");
  EXPECT_EQ(root.text_of("Name"), "b <&é😀");
  EXPECT_EQ(root.text_of("Empty"), "");
  EXPECT_EQ(root.text_of("No"), "");
  ASSERT_EQ(root.children.size(), 4U);
  EXPECT_EQ(root.children[3].text_of("Key"), "<b>c");
}

TEST(Xml, that_is_wrong_is_refused) {
  std::string deep, wide = "<a>";
  for (int i = 0; i < 40; ++i) deep += "<a>";
  for (int i = 0; i < 300'000; ++i) wide += "<b/>";
  for (const std::string& text :
       {std::string(), std::string("<a>"), std::string("<a></b>"), std::string("<a/><b/>"), std::string("<a b></a>"),
        std::string("<a b=c></a>"), std::string("<a>&xxe;</a>"), std::string("<a>&#xd800;</a>"),
        std::string("<a>&#0;</a>"), std::string("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"),
        std::string("<html><body>hello"), deep, wide + "</a>", std::string("<a>&amp</a>"), std::string("<a"),
        std::string("<a b=\"1\"c=\"2\"/>"), std::string("text")}) {
    const Result<XmlElement> read = parse_xml(text, "the answer");
    ASSERT_FALSE(read.ok()) << text.substr(0, 60);
    EXPECT_EQ(read.error().kind, ErrorKind::corrupt);
  }
}

TEST(Xml, escaped_text_reads_back) {
  const std::string text = "a <b> & \"c\"";
  EXPECT_EQ(parse_xml("<x>" + xml_escaped(text) + "</x>", "x")->text, text);
}

}  // namespace
}  // namespace systole
