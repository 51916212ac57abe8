#include <algorithm>
#include <iostream>

#include "site/app/commands.h"
#include "site/app/csv.h"
#include "site/app/site.h"
#include "weir/base/id.h"
#include "weir/base/rfc3339.h"

namespace weir::site {
namespace {

constexpr std::size_t kBatch = 1000;
const std::vector<std::string> kColumns{"id", "title", "url", "points", "comments", "author", "created_at"};
constexpr std::uint64_t kMaxPoints = 1'000'000'000;

struct Post {
  Id id = 0;
  std::string title, url, author;
  std::int64_t points = 0;
  WallTime created_at{};
};

// Throws Unusable with the file and the row for what can't be meant.
Post post_of(const std::filesystem::path& file, std::size_t number, const std::vector<std::string>& row) {
  const auto refuse = [&](const std::string& why) {
    throw Unusable(file.string() + ", row " + std::to_string(number) + ": " + why);
  };
  if (row.size() != kColumns.size()) refuse("it has " + std::to_string(row.size()) + " columns instead of 7");
  Post post;
  const auto id = parse_id(row[0]);
  if (!id) refuse("\"" + row[0] + "\" is no id");
  post.id = *id;
  post.title = row[1];
  if (const auto fault = article::title_fault(post.title)) refuse("title: " + *fault);
  post.url = row[2];
  if (const auto fault = article::content_fault(post.url)) refuse("url: " + *fault);
  const auto points = parse_decimal(row[3], kMaxPoints);
  if (!points) refuse("\"" + row[3] + "\" is no number of points");
  post.points = static_cast<std::int64_t>(*points);
  post.author = row[5];
  if (const auto fault = user::fault_of_nickname(post.author)) refuse("author: " + *fault);
  const auto created = parse_rfc3339(row[6]);
  if (!created) refuse("\"" + row[6] + "\" is no time such as 2016-08-04T11:52:00Z");
  post.created_at = *created;
  return post;
}

void each_post(const std::filesystem::path& file, const std::function<void(Post)>& on_post) {
  bool header = false;
  read_csv(file, [&](std::size_t number, const std::vector<std::string>& row) {
    if (number > 1) return on_post(post_of(file, number, row));
    if (row != kColumns)
      throw Unusable(file.string() +
                     ": the first row must be id,title,url,points,comments,author,created_at");
    header = true;
  });
  if (!header) throw Unusable(file.string() + " is empty");
}

class Importer {
 public:
  explicit Importer(Site& site) : site_(site) {}

  void take(Post post) {
    batch_.push_back(std::move(post));
    if (batch_.size() == kBatch) write();
  }

  // Authors, articles, points, each known by the post's id: whatever was written before a crash is found
  // again.
  void write() {
    std::vector<user::NewUser> authors;
    for (const Post& post : batch_) {
      user::NewUser author;
      author.origin = "hn:" + post.author;
      author.nickname = post.author;
      author.created_at = post.created_at;
      authors.push_back(std::move(author));
    }
    const std::vector<Id> author_ids = site_.users().create_many(authors);
    std::vector<article::ImportedArticle> articles;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      articles.push_back({author_ids[i], batch_[i].title,
                          batch_[i].url.empty() ? "" : "<" + batch_[i].url + ">", batch_[i].created_at,
                          "hn:" + std::to_string(batch_[i].id)});
    }
    const std::vector<article::Imported> imported = site_.articles().create_published_many(articles);
    std::vector<interaction::ImportedLikes> points;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      points.push_back({imported[i].id, batch_[i].points});
      added_ += imported[i].inserted ? 1 : 0;
    }
    site_.interactions().import_likes_now(article::kBiz, points);
    batch_.clear();
  }

  std::size_t added() const { return added_; }

 private:
  Site& site_;
  std::vector<Post> batch_;
  std::size_t added_ = 0;
};

}  // namespace

int import_hn(const config::Settings& settings, const ImportOptions& options) {
  // First everything is read and checked, so that a fault in the last row leaves nothing half done.
  std::size_t posts = 0;
  WallTime newest = WallTime::min();
  each_post(options.file, [&](const Post& post) {
    ++posts;
    newest = std::max(newest, post.created_at);
  });
  const auto shift =
      options.shift && posts > 0 ? Clock::system().now() - newest : std::chrono::microseconds(0);

  Site site(settings);
  Importer importer(site);
  each_post(options.file, [&](Post post) {
    post.created_at += shift;
    importer.take(std::move(post));
  });
  importer.write();
  std::cout << "imported " << importer.added() << " of " << posts << " posts";
  if (importer.added() < posts) std::cout << "; the rest was there already";
  std::cout << '\n';
  return 0;
}

}  // namespace weir::site
