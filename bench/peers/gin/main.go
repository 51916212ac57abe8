// The service one could write instead: gin, answering one article from memory as JSON.
package main

import (
	"encoding/json"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/gin-gonic/gin"
)

type author struct {
	ID       string `json:"id"`
	Nickname string `json:"nickname"`
}

type interaction struct {
	Biz          string `json:"biz"`
	BizID        string `json:"biz_id"`
	ReadCount    int64  `json:"read_count"`
	LikeCount    int64  `json:"like_count"`
	CollectCount int64  `json:"collect_count"`
}

type article struct {
	ID          string      `json:"id"`
	Title       string      `json:"title"`
	Content     string      `json:"content"`
	Author      author      `json:"author"`
	PublishedAt string      `json:"published_at"`
	UpdatedAt   string      `json:"updated_at"`
	Interaction interaction `json:"interaction"`
}

// usage: gin ADDR:PORT FILE (the JSON that Weir answers)
func main() {
	bytes, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var one article
	if err := json.Unmarshal(bytes, &one); err != nil {
		log.Fatal(err)
	}
	var lock sync.RWMutex
	articles := map[string]*article{one.ID: &one}

	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/v1/articles/:id", func(c *gin.Context) {
		lock.RLock()
		found, ok := articles[c.Param("id")]
		lock.RUnlock()
		if !ok {
			c.JSON(http.StatusNotFound, gin.H{"code": "not_found"})
			return
		}
		c.JSON(http.StatusOK, found)
	})
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, router))
}
