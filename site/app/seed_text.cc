#include "site/app/seed_text.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::site {
namespace {

using Words = std::span<const std::string_view>;

std::string pick(Random& random, Words words) {
  return std::string(words[random.below(words.size())]);
}

constexpr std::array<std::string_view, 16> kSubjects{"single flight",
                                                     "negative caching",
                                                     "TTL jitter",
                                                     "the inbox table",
                                                     "a fencing token",
                                                     "the write-ahead log",
                                                     "a Bloom filter",
                                                     "consistent hashing",
                                                     "the hot list",
                                                     "backpressure",
                                                     "an idempotency key",
                                                     "the journal",
                                                     "group commit",
                                                     "a token bucket",
                                                     "the dead-letter queue",
                                                     "smooth weighted round robin"};
constexpr std::array<std::string_view, 12> kTitles{
    "What $ taught us about patience", "A year with $",
    "$, explained to my younger self", "The night $ saved the launch",
    "Why we stopped fearing $",        "Measuring $ instead of believing in it",
    "$ in two hundred lines",          "Three ways to get $ wrong",
    "The quiet beauty of $",           "$ under a thousand clients",
    "How $ fails, and how to notice",  "Notes on $ from a small team"};
constexpr std::array<std::string_view, 12> kSentences{
    "The first version was simple, and it was wrong in a way that only showed on Mondays.",
    "We drew the timeline on a whiteboard and found two writers where we had sworn there was one.",
    "Nothing about it is new; what was new to us was how much it gives for how little.",
    "A reader never waits for a writer, and a writer never waits for a count.",
    "The graph went flat, and for a moment we thought the metrics had stopped.",
    "Of a hundred requests that missed together, ninety-nine now wait for the one that asks.",
    "We broke it on purpose, every day for a week, until breaking it became boring.",
    "It costs eight bytes an entry, and it is the best eight bytes in the process.",
    "When the queue is away, the journal keeps what it was given and says so.",
    "The number to watch is not the mean. It never is.",
    "What can't be promised should be named, and we named it in the docs.",
    "Somebody asked what happens when it runs twice. That question became the test suite."};
constexpr std::array<std::string_view, 5> kHeadings{"What happened", "The shape of it", "What we measured",
                                                    "What we would do again", "Where it stops"};

constexpr std::array<std::string_view, 14> kSubjectsZh{
    "单飞加载",   "空值缓存", "过期抖动", "收件箱表", "防护令牌", "预写日志", "布隆过滤器",
    "一致性哈希", "热榜",     "背压",     "幂等键",   "组提交",   "令牌桶",   "死信队列"};
constexpr std::array<std::string_view, 10> kTitlesZh{
    "$教会我们的事",       "和$相处的一年",         "写给新人的$",   "$救了发布会的那个夜晚",
    "我们为什么不再害怕$", "量一量$，而不是相信它", "两百行写一个$", "用错$的三种方式",
    "一千个客户端下的$",   "小团队的$笔记"};
constexpr std::array<std::string_view, 10> kSentencesZh{
    "第一版很简单，错得也很隐蔽：只有星期一才看得出来。",
    "我们在白板上画时间线，发现本以为只有一个写入者的地方，其实有两个。",
    "它并不新鲜，新鲜的是：付出这么少，换来这么多。",
    "读者从不等待写者，写者也从不等待计数。",
    "曲线忽然变平，有那么一会儿，大家以为监控停了。",
    "一百个同时落空的请求里，如今九十九个在等那一个去问。",
    "我们每天故意把它弄坏，弄了一个星期，直到弄坏它变得无聊。",
    "队列不在的时候，日志先收着，并且如实说明。",
    "要盯的数字从来不是平均值。",
    "有人问：它要是执行两次会怎样？这个问题后来成了整套测试。"};
constexpr std::array<std::string_view, 5> kHeadingsZh{"发生了什么", "它长什么样", "我们量到的",
                                                      "还会再做一次的", "它的边界"};

constexpr std::array<std::string_view, 12> kNames{"Ada",   "Linus", "Mira", "Otto", "Noor",  "Ines",
                                                  "Tomas", "Yuki",  "Elif", "Sam",  "Leila", "Bo"};
constexpr std::array<std::string_view, 12> kNamesZh{"林间小路", "南山", "阿堰", "听雨", "小满", "青石",
                                                    "望川",     "云边", "老周", "一苇", "白鹭", "河图"};

struct Language {
  Words subjects, titles, sentences, headings;
  std::string_view space;
};
const Language kEnglish{kSubjects, kTitles, kSentences, kHeadings, " "};
const Language kChinese{kSubjectsZh, kTitlesZh, kSentencesZh, kHeadingsZh, ""};

std::string title(Random& random, const Language& language, const std::string& subject) {
  std::string text = pick(random, language.titles);
  text.replace(text.find('$'), 1, subject);
  // Lower-case subjects may begin an English title.
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// Takes a text's sentences in an order of chance, none twice.
class Sentences {
 public:
  Sentences(Random& random, const Language& language)
      : language_(language), left_(language.sentences.begin(), language.sentences.end()) {
    for (std::size_t i = left_.size(); i > 1; --i) std::swap(left_[i - 1], left_[random.below(i)]);
  }

  std::string paragraph(std::uint64_t count) {
    std::string text;
    for (; count > 0 && !left_.empty(); --count) {
      if (!text.empty()) text += language_.space;
      text += left_.back();
      left_.pop_back();
    }
    return text + "\n\n";
  }

 private:
  const Language& language_;
  std::vector<std::string_view> left_;
};

}  // namespace

SeedText seed_text(Random& random) {
  const Language& language = random.chance(0.5) ? kEnglish : kChinese;
  const std::string subject = pick(random, language.subjects);
  SeedText made{title(random, language, subject), ""};
  Sentences sentences(random, language);
  made.content = sentences.paragraph(3 + random.below(2));
  made.content += "## " + pick(random, language.headings) + "\n\n" + sentences.paragraph(3);
  if (random.chance(0.4))
    made.content += "```cpp\nauto value = co_await cache.get(key);  // one load, however many ask\n```\n\n";
  if (random.chance(0.4)) made.content += "> " + sentences.paragraph(1);
  made.content += "## " + pick(random, language.headings) + "\n\n" + sentences.paragraph(2);
  return made;
}

std::string seed_nickname(Random& random) {
  return pick(random, random.chance(0.5) ? Words(kNames) : Words(kNamesZh));
}

}  // namespace weir::site
